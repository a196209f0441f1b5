import static java.util.concurrent.TimeUnit.MINUTES;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;

/** fabric8: typed custom resources, and what the server answers to them. */
public class WithFabric8 {
  static final int WRITERS = 4, INCREMENTS = 5, OBJECTS = 25;
  static final long PAGE = 10;
  static final String NAMESPACE = "default";

  final KubernetesClient client = new KubernetesClientBuilder().build();
  final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));

  @JsonInclude(JsonInclude.Include.NON_NULL)
  public static class Spec {
    public int count;
    public String note;
  }

  public static class Status {
    public int seen;
  }

  @Group("interop.example.com")
  @Version("v1")
  public static class Gadget extends CustomResource<Spec, Status> implements Namespaced {}

  interface Step {
    void run() throws Exception;
  }

  static void check(boolean holds, Object otherwise) {
    if (!holds) throw new AssertionError(otherwise);
  }

  /** Check that it fails with an answer of this code that tells this. */
  static void refused(int code, String told, Runnable attempt) {
    try {
      attempt.run();
    } catch (KubernetesClientException error) {
      check(error.getCode() == code && error.getMessage().contains(told), error);
      return;
    }
    throw new AssertionError("expected " + code);
  }

  static Gadget gadget(String name, int count) {
    var made = new Gadget();
    made.getMetadata().setName(name);
    made.getMetadata().setNamespace(NAMESPACE);
    made.setSpec(new Spec());
    made.getSpec().count = count;
    return made;
  }

  static File written(String name) {
    return new File(System.getenv("WRITTEN"), name + ".json");
  }

  Resource<Gadget> resource(Gadget gadget) {
    return client.resource(gadget);
  }

  Resource<Gadget> named(String name) {
    return client.resources(Gadget.class).inNamespace(NAMESPACE).withName(name);
  }

  /** Have the server forget all revisions but the current one. */
  void compact() throws Exception {
    System.out.println("compact");
    check("compacted".equals(input.readLine()), "not compacted");
  }

  void define() {
    var definition = client.apiextensions().v1().customResourceDefinitions().load(written("definition"));
    definition.create();
    definition.waitUntilCondition(
        current ->
            current != null
                && current.getStatus() != null
                && current.getStatus().getConditions().stream()
                    .anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True")),
        5,
        MINUTES);
  }

  /** Read, change, write, and on a Conflict again. */
  void increment(String name) {
    while (true) {
      var current = named(name).require();
      current.getSpec().count++;
      try {
        resource(current).update();
        return;
      } catch (KubernetesClientException error) {
        if (error.getCode() != 409) throw error;
      }
    }
  }

  void conflicts() {
    var first = resource(gadget("counter", 0)).create();
    var writers = new ArrayList<CompletableFuture<Void>>();
    for (int writer = 0; writer < WRITERS; writer++) {
      Runnable work = () -> IntStream.range(0, INCREMENTS).forEach(done -> increment("counter"));
      writers.add(CompletableFuture.runAsync(work, command -> new Thread(command).start()));
    }
    writers.forEach(CompletableFuture::join);
    check(named("counter").require().getSpec().count == WRITERS * INCREMENTS, "increments are lost");
    refused(409, "the object has been modified", () -> resource(first).update());
    refused(409, "the object has been modified", () -> resource(first).lockResourceVersion().replace());
    refused(422, "spec.count", () -> resource(gadget("bad", -1)).create());
    refused(409, "already exists", () -> resource(gadget("counter", 0)).create());
    var edited =
        named("counter")
            .edit(
                current -> {
                  current.getSpec().note = "edited";
                  return current;
                });
    check(edited.getSpec().note.equals("edited"), edited);
  }

  void status() {
    var current = named("counter").require();
    current.getSpec().count = 99;
    current.setStatus(new Status());
    current.getStatus().seen = 1;
    var changed = resource(current).updateStatus();
    check(changed.getStatus().seen == 1 && changed.getSpec().count == WRITERS * INCREMENTS, changed);
    var again =
        named("counter")
            .editStatus(
                seen -> {
                  seen.getStatus().seen++;
                  return seen;
                });
    check(again.getStatus().seen == 2, again);
  }

  void patches() {
    var merge = PatchContext.of(PatchType.JSON_MERGE);
    check(named("counter").patch(merge, "{\"spec\":{\"note\":\"merged\"}}").getSpec().note.equals("merged"), "merge");
    var operations = "[{\"op\":\"replace\",\"path\":\"/spec/note\",\"value\":\"replaced\"}]";
    var patched = named("counter").patch(PatchContext.of(PatchType.JSON), operations);
    check(patched.getSpec().note.equals("replaced"), patched);

    Deployment made = client.apps().deployments().load(written("deployment")).create();
    check(made.getSpec().getTemplate().getSpec().getContainers().get(0).getPorts().get(0).getProtocol().equals("TCP"), made);
    var image = "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"example.com/c:2\"}]}}}}";
    var changed = client.resource(made).patch(PatchContext.of(PatchType.STRATEGIC_MERGE), image);
    var container = changed.getSpec().getTemplate().getSpec().getContainers().get(0);
    check(container.getImage().equals("example.com/c:2"), changed);
    check(container.getPorts().get(0).getContainerPort() == 80, changed);
  }

  void apply() {
    var made = resource(gadget("applied", 1)).fieldManager("one").serverSideApply();
    var again = resource(gadget("applied", 1)).fieldManager("one").serverSideApply();
    check(again.getMetadata().getManagedFields().get(0).getManager().equals("one"), again);
    check(again.getMetadata().getResourceVersion().equals(made.getMetadata().getResourceVersion()), again);
    var second = resource(gadget("applied", 2)).fieldManager("two");
    refused(409, "conflict with \"one\": .spec.count", second::serverSideApply);
    var forced = resource(gadget("applied", 2)).fieldManager("two").forceConflicts().serverSideApply();
    check(forced.getSpec().count == 2, forced);
  }

  void pages() {
    for (int number = 0; number < OBJECTS; number++) resource(gadget("page-" + number, 0)).create();
    var seen = new ArrayList<String>();
    String token = null;
    do {
      var options = new ListOptionsBuilder().withLimit(PAGE).withContinue(token).build();
      var page = client.resources(Gadget.class).inNamespace(NAMESPACE).list(options);
      check(page.getItems().size() <= PAGE, page);
      page.getItems().forEach(item -> seen.add(item.getMetadata().getName()));
      token = page.getMetadata().getContinue();
    } while (token != null && !token.isEmpty());
    check(new HashSet<>(seen).size() == seen.size() && seen.size() >= OBJECTS, seen);
  }

  /** What happens to objects, as "name event". */
  static class Told implements ResourceEventHandler<Gadget> {
    final BlockingQueue<String> events = new LinkedBlockingQueue<>();

    public void onAdd(Gadget added) {
      events.add(added.getMetadata().getName() + " added");
    }

    public void onUpdate(Gadget old, Gadget updated) {
      events.add(updated.getMetadata().getName() + " updated");
    }

    public void onDelete(Gadget deleted, boolean stateUnknown) {
      events.add(deleted.getMetadata().getName() + " deleted");
    }

    void await(String event) throws InterruptedException {
      while (!events.take().equals(event)) {}
    }
  }

  void watches() throws Exception {
    var gadgets = client.resources(Gadget.class).inNamespace(NAMESPACE);
    var old = gadgets.list().getMetadata().getResourceVersion();
    var told = new Told();
    try (var informer = gadgets.inform(told)) {
      resource(gadget("watched", 0)).create();
      told.await("watched added");
      named("watched").delete();
      told.await("watched deleted");
      compact();
      resource(gadget("later", 0)).create();
      told.await("later added");
      check(informer.getStore().getByKey("default/counter").getSpec().count == WRITERS * INCREMENTS, "other counter");
      check(informer.getStore().getByKey("default/watched") == null, "not deleted");
    }
    var closed = new CompletableFuture<WatcherException>();
    var watcher =
        new Watcher<Gadget>() {
          public void eventReceived(Action action, Gadget gadget) {
            closed.completeExceptionally(new AssertionError("told of what is forgotten: " + gadget));
          }

          public void onClose(WatcherException cause) {
            closed.complete(cause);
          }
        };
    try (var watch = gadgets.watch(new ListOptionsBuilder().withResourceVersion(old).build(), watcher)) {
      check(closed.get().isHttpGone(), closed);
    }
  }

  /** An election is won, the lease released, and won by another. */
  void lease() throws Exception {
    for (var identity : List.of("a", "b")) {
      var leads = new CompletableFuture<Void>();
      var callbacks = new LeaderCallbacks(() -> leads.complete(null), () -> {}, leader -> {});
      var config =
          new LeaderElectionConfigBuilder()
              .withName("fabric8")
              .withLock(new LeaseLock(NAMESPACE, "fabric8", identity))
              .withLeaseDuration(Duration.ofSeconds(60))
              .withRenewDeadline(Duration.ofSeconds(40))
              .withRetryPeriod(Duration.ofSeconds(1))
              .withReleaseOnCancel(true)
              .withLeaderCallbacks(callbacks)
              .build();
      var elector = client.leaderElector().withConfig(config).build();
      var election = elector.start();
      leads.get();
      var held = client.leases().inNamespace(NAMESPACE).withName("fabric8").require();
      check(held.getSpec().getHolderIdentity().equals(identity), held);
      election.cancel(true);
    }
  }

  static void step(String name, Step step) throws Exception {
    step.run();
    System.out.println(name);
  }

  public static void main(String[] arguments) throws Exception {
    var program = new WithFabric8();
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
