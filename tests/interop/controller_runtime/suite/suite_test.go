// Package suite is what a kubebuilder project's tests are: envtest starts the control plane that KUBEBUILDER_ASSETS
// names, installs a definition and webhooks, and a manager works on them.
package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var books = schema.GroupVersionKind{Group: "interop.example.com", Version: "v1", Kind: "Book"}

func newBook(name string) *unstructured.Unstructured {
	book := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pages": int64(3)}}}
	book.SetGroupVersionKind(books)
	book.SetNamespace("default")
	book.SetName(name)
	return book
}

func definition() *apiextensionsv1.CustomResourceDefinition {
	text := `{"metadata": {"name": "books.interop.example.com"}, "spec": {"group": "interop.example.com",
		"names": {"plural": "books", "singular": "book", "kind": "Book", "listKind": "BookList"}, "scope": "Namespaced",
		"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
		"schema": {"openAPIV3Schema": {"type": "object", "properties": {
		"spec": {"type": "object", "properties": {"pages": {"type": "integer"}, "language": {"type": "string"}}},
		"status": {"type": "object", "properties": {"read": {"type": "integer"}}}}}}}]}}`
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal([]byte(text), crd); err != nil {
		panic(err)
	}
	return crd
}

func rules() []admissionv1.RuleWithOperations {
	rule := admissionv1.Rule{APIGroups: []string{books.Group}, APIVersions: []string{"v1"}, Resources: []string{"books"}}
	return []admissionv1.RuleWithOperations{
		{Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, Rule: rule},
	}
}

func hooks() envtest.WebhookInstallOptions {
	none := admissionv1.SideEffectClassNone
	config := func(path string) admissionv1.WebhookClientConfig {
		service := &admissionv1.ServiceReference{Name: "webhooks", Namespace: "default", Path: &path}
		return admissionv1.WebhookClientConfig{Service: service}
	}
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionv1.MutatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: "defaults.interop.example.com", ClientConfig: config("/mutate"), Rules: rules(), SideEffects: &none,
				AdmissionReviewVersions: []string{"v1"},
			}},
		}},
		ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "rules"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "rules.interop.example.com", ClientConfig: config("/validate"), Rules: rules(), SideEffects: &none,
				AdmissionReviewVersions: []string{"v1"},
			}},
		}},
	}
}

func mutate(_ context.Context, request admission.Request) admission.Response {
	book := &unstructured.Unstructured{}
	if err := book.UnmarshalJSON(request.Object.Raw); err != nil {
		return admission.Errored(400, err)
	}
	if _, found, _ := unstructured.NestedString(book.Object, "spec", "language"); !found {
		_ = unstructured.SetNestedField(book.Object, "en", "spec", "language")
	}
	changed, _ := book.MarshalJSON()
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

func validate(_ context.Context, request admission.Request) admission.Response {
	book := &unstructured.Unstructured{}
	if err := book.UnmarshalJSON(request.Object.Raw); err != nil {
		return admission.Errored(400, err)
	}
	if pages, _, _ := unstructured.NestedInt64(book.Object, "spec", "pages"); pages < 1 {
		return admission.Denied("a book has pages")
	}
	return admission.Allowed("")
}

type reader struct{ client.Client }

func (r *reader) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	book := newBook(request.Name)
	if err := r.Get(ctx, request.NamespacedName, book); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	pages, _, _ := unstructured.NestedInt64(book.Object, "spec", "pages")
	if read, _, _ := unstructured.NestedInt64(book.Object, "status", "read"); read == pages {
		return ctrl.Result{}, nil
	}
	before := book.DeepCopy()
	if err := unstructured.SetNestedField(book.Object, pages, "status", "read"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, book, client.MergeFrom(before))
}

func startManager(ctx context.Context, t *testing.T, config *rest.Config, options envtest.WebhookInstallOptions) {
	t.Helper()
	server := webhook.NewServer(webhook.Options{
		Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir,
	})
	manager, err := ctrl.NewManager(config, ctrl.Options{
		WebhookServer: server, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	must(t, err)
	server = manager.GetWebhookServer()
	server.Register("/mutate", &webhook.Admission{Handler: admission.HandlerFunc(mutate)})
	server.Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(validate)})
	must(t, ctrl.NewControllerManagedBy(manager).For(newBook("")).Complete(&reader{manager.GetClient()}))
	go func() {
		if err := manager.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	must(t, wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return server.StartedChecker()(nil) == nil, nil
	}))
}

func TestOperator(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}, WebhookInstallOptions: hooks(),
	}
	began := time.Now()
	config, err := environment.Start()
	must(t, err)
	fmt.Printf("started in %.3f s\n", time.Since(began).Seconds())
	defer func() { must(t, environment.Stop()) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	startManager(ctx, t, config, environment.WebhookInstallOptions)
	c, err := client.New(config, client.Options{})
	must(t, err)

	book := newBook("first")
	must(t, c.Create(ctx, book))
	if language, _, _ := unstructured.NestedString(book.Object, "spec", "language"); language != "en" {
		t.Errorf("the defaults are missing: %v", book.Object)
	}
	bad := newBook("bad")
	must(t, unstructured.SetNestedField(bad.Object, int64(0), "spec", "pages"))
	if err := c.Create(ctx, bad); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "a book has pages") {
		t.Errorf("not refused: %v", err)
	}
	awaitRead(ctx, t, c, 3)
	must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := newBook("first")
		if err := c.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
			return err
		}
		must(t, unstructured.SetNestedField(current.Object, int64(5), "spec", "pages"))
		return c.Update(ctx, current)
	}))
	awaitRead(ctx, t, c, 5)
	checkUsers(ctx, t, environment, c)
	checkWithoutControllers(ctx, t, c)
}

func awaitRead(ctx context.Context, t *testing.T, c client.Client, pages int64) {
	t.Helper()
	must(t, wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		book := newBook("first")
		err := c.Get(ctx, client.ObjectKeyFromObject(book), book)
		read, _, _ := unstructured.NestedInt64(book.Object, "status", "read")
		return read == pages, err
	}))
}

// checkUsers: a user of a client certificate may do what a role allows, and no more.
func checkUsers(ctx context.Context, t *testing.T, environment *envtest.Environment, c client.Client) {
	t.Helper()
	user, err := environment.AddUser(envtest.User{Name: "alice", Groups: []string{"readers"}}, nil)
	must(t, err)
	must(t, c.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}))
	must(t, c.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "readers"},
		Subjects:   []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "readers"}},
	}))
	alice, err := client.New(user.Config(), client.Options{})
	must(t, err)
	must(t, wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := alice.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
		return err == nil, ignoreForbidden(err)
	}))
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}}
	if err := alice.Create(ctx, made); !apierrors.IsForbidden(err) {
		t.Errorf("not forbidden: %v", err)
	}
	kubectl, err := user.Kubectl()
	must(t, err)
	if kubectl.Path == "" {
		return
	}
	if out, stderr, err := kubectl.Run("auth", "whoami"); err != nil {
		t.Errorf("kubectl: %v %v %v", out, stderr, err)
	}
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// checkWithoutControllers: as beside a kube-apiserver alone, nobody removes what has no owner any more.
func checkWithoutControllers(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	owner := newBook("first")
	must(t, c.Get(ctx, client.ObjectKeyFromObject(owner), owner))
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "child", Namespace: "default"}}
	must(t, ctrl.SetControllerReference(owner, child, c.Scheme()))
	must(t, c.Create(ctx, child))
	must(t, c.Delete(ctx, owner))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(child), child))
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	must(t, c.Create(ctx, space))
	must(t, c.Delete(ctx, space))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(space), space))
	if space.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("the namespace is %s", space.Status.Phase)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
