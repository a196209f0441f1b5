import com.google.gson.reflect.TypeToken;
import io.kubernetes.client.common.KubernetesListObject;
import io.kubernetes.client.common.KubernetesObject;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.JSON;
import io.kubernetes.client.openapi.apis.ApiextensionsV1Api;
import io.kubernetes.client.openapi.apis.AppsV1Api;
import io.kubernetes.client.openapi.apis.CoordinationV1Api;
import io.kubernetes.client.openapi.models.V1CustomResourceDefinition;
import io.kubernetes.client.openapi.models.V1Deployment;
import io.kubernetes.client.openapi.models.V1Lease;
import io.kubernetes.client.openapi.models.V1LeaseSpec;
import io.kubernetes.client.openapi.models.V1ListMeta;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.Config;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.RetryUtils;
import io.kubernetes.client.util.ServerSideApply;
import io.kubernetes.client.util.Watch;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.Dynamics;
import io.kubernetes.client.util.generic.options.ListOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;

/** The official client: its generic API for custom resources, and what the server answers to it. */
public class WithClientJava {
  static final int WRITERS = 4, INCREMENTS = 5, OBJECTS = 25, PAGE = 10;
  static final String GROUP = "interop.example.com", NAMESPACE = "default";

  public static class Spec {
    public Integer count;
    public String note;
  }

  public static class Status {
    public int seen;
  }

  /** Its fields are public for the sake of the client's `Yaml`. */
  public static class Gadget implements KubernetesObject {
    public String apiVersion = GROUP + "/v1", kind = "Gadget";
    public V1ObjectMeta metadata = new V1ObjectMeta();
    public Spec spec = new Spec();
    public Status status;

    public String getApiVersion() {
      return apiVersion;
    }

    public String getKind() {
      return kind;
    }

    public V1ObjectMeta getMetadata() {
      return metadata;
    }
  }

  public static class GadgetList implements KubernetesListObject {
    String apiVersion, kind;
    V1ListMeta metadata;
    List<Gadget> items;

    public String getApiVersion() {
      return apiVersion;
    }

    public String getKind() {
      return kind;
    }

    public V1ListMeta getMetadata() {
      return metadata;
    }

    public List<Gadget> getItems() {
      return items;
    }
  }

  interface Step {
    void run() throws Exception;
  }

  final ApiClient client = Config.defaultClient().setReadTimeout(0);
  final GenericKubernetesApi<Gadget, GadgetList> gadgets =
      new GenericKubernetesApi<>(Gadget.class, GadgetList.class, GROUP, "v1", "gadgets", client);
  final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));

  WithClientJava() throws IOException {}

  static void check(boolean holds, Object otherwise) {
    if (!holds) throw new AssertionError(otherwise);
  }

  /** Check that it fails with an answer of this code that tells this. */
  static void refused(int code, String told, Step attempt) throws Exception {
    try {
      attempt.run();
    } catch (ApiException error) {
      var said = error.getMessage() + error.getResponseBody();
      check(error.getCode() == code && said.contains(told), error.getCode() + " " + said);
      return;
    }
    throw new AssertionError("expected " + code);
  }

  static Gadget gadget(String name, int count) {
    var made = new Gadget();
    made.metadata.name(name).namespace(NAMESPACE);
    made.spec.count = count;
    return made;
  }

  static String read(String name) throws IOException {
    return Files.readString(Path.of(System.getenv("WRITTEN"), name + ".json"));
  }

  Gadget named(String name) throws ApiException {
    return gadgets.get(NAMESPACE, name).throwsApiException().getObject();
  }

  Gadget create(String name, int count) throws ApiException {
    return gadgets.create(gadget(name, count)).throwsApiException().getObject();
  }

  Gadget update(Gadget gadget) throws ApiException {
    return gadgets.update(gadget).throwsApiException().getObject();
  }

  /** Have the server forget all revisions but the current one. */
  void compact() throws Exception {
    System.out.println("compact");
    check("compacted".equals(input.readLine()), "not compacted");
  }

  void define() throws Exception {
    // Its own class for definitions sends an empty `dependencies`, which Kubernetes forbids: it goes as it is written.
    var definitions = new DynamicKubernetesApi("apiextensions.k8s.io", "v1", "customresourcedefinitions", client);
    definitions.create(Dynamics.newFromJson(read("definition"))).throwsApiException();
    var call = new ApiextensionsV1Api(client).listCustomResourceDefinition().watch(true).buildCall(null);
    var events = new TypeToken<Watch.Response<V1CustomResourceDefinition>>() {}.getType();
    try (Watch<V1CustomResourceDefinition> watch = Watch.createWatch(client, call, events)) {
      for (var event : watch) {
        var conditions = event.object.getStatus().getConditions();
        if (conditions != null
            && conditions.stream().anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True")))
          return;
      }
    }
    throw new AssertionError("never established");
  }

  /** Read, change, write, and on a Conflict again, as the client itself offers it. */
  void increment(String name) throws ApiException {
    RetryUtils.retryUponConflict(
        () -> {
          var current = named(name);
          current.spec.count++;
          return update(current);
        },
        1000);
  }

  void conflicts() throws Exception {
    var first = create("counter", 0);
    var writers = new ArrayList<CompletableFuture<Void>>();
    for (int writer = 0; writer < WRITERS; writer++) {
      var ended = new CompletableFuture<Void>();
      Runnable work =
          () -> {
            try {
              for (int done = 0; done < INCREMENTS; done++) increment("counter");
              ended.complete(null);
            } catch (Throwable error) {
              ended.completeExceptionally(error);
            }
          };
      writers.add(ended);
      new Thread(work).start();
    }
    writers.forEach(CompletableFuture::join);
    check(named("counter").spec.count == WRITERS * INCREMENTS, "increments are lost");
    first.spec.note = "stale";
    refused(409, "the object has been modified", () -> update(first));
    refused(422, "spec.count", () -> create("bad", -1));
    refused(409, "already exists", () -> create("counter", 0));
    refused(404, "not found", () -> named("nobody"));
  }

  void status() throws Exception {
    var current = named("counter");
    current.status = new Status();
    current.status.seen = 1;
    var changed = gadgets.updateStatus(current, gadget -> gadget.status).throwsApiException().getObject();
    check(changed.status.seen == 1 && changed.spec.count == WRITERS * INCREMENTS, changed.status.seen);
  }

  Gadget patch(String format, String patch) throws ApiException {
    return gadgets.patch(NAMESPACE, "counter", format, new V1Patch(patch)).throwsApiException().getObject();
  }

  void patches() throws Exception {
    var merged = patch(V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"spec\":{\"note\":\"merged\"}}");
    check(merged.spec.note.equals("merged"), merged.spec.note);
    var operations = "[{\"op\":\"replace\",\"path\":\"/spec/note\",\"value\":\"replaced\"}]";
    var patched = patch(V1Patch.PATCH_FORMAT_JSON_PATCH, operations);
    check(patched.spec.note.equals("replaced"), patched.spec.note);

    var apps = new AppsV1Api(client);
    V1Deployment written = JSON.deserialize(read("deployment"), V1Deployment.class);
    var made = apps.createNamespacedDeployment(NAMESPACE, written).execute();
    check(made.getSpec().getTemplate().getSpec().getContainers().get(0).getPorts().get(0).getProtocol().equals("TCP"), made);
    var image = "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"example.com/c:2\"}]}}}}";
    var changed =
        PatchUtils.patch(
            V1Deployment.class,
            () -> apps.patchNamespacedDeployment("deployed", NAMESPACE, new V1Patch(image)).buildCall(null),
            V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH,
            client);
    var container = changed.getSpec().getTemplate().getSpec().getContainers().get(0);
    check(container.getImage().equals("example.com/c:2"), changed);
    check(container.getPorts().get(0).getContainerPort() == 80, changed);
  }

  static Gadget applied(int count) {
    var made = gadget("applied", count);
    // Left alone they are sent as empty ones, and every apply is a change of them.
    made.metadata.annotations(null).labels(null);
    return made;
  }

  void apply() throws Exception {
    var made = ServerSideApply.apply(gadgets, applied(1), "one");
    var again = ServerSideApply.apply(gadgets, applied(1), "one");
    check(again.metadata.getResourceVersion().equals(made.metadata.getResourceVersion()), again.metadata);
    refused(409, "conflict with \"one\": .spec.count", () -> ServerSideApply.apply(gadgets, applied(2), "two"));
    var forced = ServerSideApply.apply(gadgets, applied(2), "two", true);
    check(forced.spec.count == 2, forced.spec.count);
  }

  void pages() throws Exception {
    for (int number = 0; number < OBJECTS; number++) create("page-" + number, 0);
    var seen = new ArrayList<String>();
    String token = null;
    do {
      var options = new ListOptions().limit(PAGE)._continue(token);
      var page = gadgets.list(NAMESPACE, options).throwsApiException().getObject();
      check(page.items.size() <= PAGE, page.items.size());
      page.items.forEach(item -> seen.add(item.metadata.getName()));
      token = page.metadata.getContinue();
    } while (token != null && !token.isEmpty());
    check(new HashSet<>(seen).size() == seen.size() && seen.size() >= OBJECTS, seen);
  }

  /** What happens to objects, as "name event". */
  static class Told implements ResourceEventHandler<Gadget> {
    final BlockingQueue<String> events = new LinkedBlockingQueue<>();

    public void onAdd(Gadget added) {
      events.add(added.metadata.getName() + " added");
    }

    public void onUpdate(Gadget old, Gadget updated) {
      events.add(updated.metadata.getName() + " updated");
    }

    public void onDelete(Gadget deleted, boolean stateUnknown) {
      events.add(deleted.metadata.getName() + " deleted");
    }

    void await(String event) throws InterruptedException {
      while (!events.take().equals(event)) {}
    }
  }

  void watches() throws Exception {
    var old = gadgets.list(NAMESPACE).throwsApiException().getObject().metadata.getResourceVersion();
    var told = new Told();
    var factory = new SharedInformerFactory(client);
    var informer = factory.sharedIndexInformerFor(gadgets, Gadget.class, 0, NAMESPACE);
    informer.addEventHandler(told);
    factory.startAllRegisteredInformers();
    create("watched", 0);
    told.await("watched added");
    gadgets.delete(NAMESPACE, "watched").throwsApiException();
    told.await("watched deleted");
    compact();
    create("later", 0);
    told.await("later added");
    check(informer.getIndexer().getByKey("default/counter").spec.count == WRITERS * INCREMENTS, "other counter");
    check(informer.getIndexer().getByKey("default/watched") == null, "not deleted");
    factory.stopAllRegisteredInformers();
    try (var watch = gadgets.watch(NAMESPACE, new ListOptions().resourceVersion(old))) {
      var event = watch.iterator().next();
      check(event.type.equals("ERROR") && event.status.getCode() == 410, event.type);
    }
  }

  /** A lease is taken, renewed, and not had by one who reads too late. */
  void lease() throws Exception {
    var api = new CoordinationV1Api(client);
    var now = OffsetDateTime.now();
    var spec = new V1LeaseSpec().holderIdentity("a").leaseDurationSeconds(15).acquireTime(now).renewTime(now);
    var lease = new V1Lease().metadata(new V1ObjectMeta().name("client-java")).spec(spec);
    var made = api.createNamespacedLease(NAMESPACE, lease).execute();
    check(made.getSpec().getRenewTime().toInstant().getEpochSecond() == now.toEpochSecond(), made);
    var late = api.readNamespacedLease("client-java", NAMESPACE).execute();
    made.getSpec().renewTime(OffsetDateTime.now());
    var renewed = api.replaceNamespacedLease("client-java", NAMESPACE, made).execute();
    check(renewed.getSpec().getHolderIdentity().equals("a"), renewed);
    late.getSpec().holderIdentity("b");
    refused(
        409,
        "the object has been modified",
        () -> api.replaceNamespacedLease("client-java", NAMESPACE, late).execute());
  }

  static void step(String name, Step step) throws Exception {
    step.run();
    System.out.println(name);
  }

  public static void main(String[] arguments) throws Exception {
    var program = new WithClientJava();
    step("define", program::define);
    step("conflicts", program::conflicts);
    step("status", program::status);
    step("patches", program::patches);
    step("apply", program::apply);
    step("pages", program::pages);
    step("watches", program::watches);
    step("lease", program::lease);
    System.exit(0);
  }
}
