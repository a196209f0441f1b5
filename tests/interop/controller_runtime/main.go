// An operator as kubebuilder would have it, against the server of $KUBECONFIG: a typed client that speaks protobuf,
// informers, leader election, a reconciler with a finalizer. It prints a line for each step and exits with 0.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "interop.example.com/cleanup"

var (
	widgets = schema.GroupVersionKind{Group: "interop.example.com", Version: "v1", Kind: "Widget"}
	scheme  = runtime.NewScheme()
)

type reconciler struct {
	client.Client
	mu    sync.Mutex
	calls int
}

func newWidget() *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(widgets)
	return found
}

// Reconcile keeps a Deployment for each Widget, and tells in the Widget's status how many replicas are ready.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	r.calls++
	r.mu.Unlock()
	widget := newWidget()
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(widget, finalizer) {
			return ctrl.Result{}, r.Update(ctx, widget)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(widget, finalizer) {
		return ctrl.Result{}, r.Update(ctx, widget)
	}
	replicas, _, _ := unstructured.NestedInt64(widget.Object, "spec", "replicas")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: request.Name, Namespace: request.Namespace}}
	labels := map[string]string{"widget": request.Name}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		wanted := int32(replicas)
		deployment.Spec.Replicas = &wanted
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) == 0 {
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		}
		return controllerutil.SetControllerReference(widget, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := widget.DeepCopy()
	ready := int64(deployment.Status.ReadyReplicas)
	if err := unstructured.SetNestedField(widget.Object, ready, "status", "readyReplicas"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, widget, client.MergeFrom(before))
}

func main() {
	ctrl.SetLogger(logr.Discard())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "interop.example.com",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	worker := &reconciler{Client: manager.GetClient()}
	err = ctrl.NewControllerManagedBy(manager).For(newWidget()).Owns(&appsv1.Deployment{}).Complete(worker)
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	select {
	case <-manager.Elected():
	case err := <-ended:
		return fmt.Errorf("manager ended: %w", err)
	case <-ctx.Done():
		return errors.New("never elected")
	}
	fmt.Println("elected")
	direct := manager.GetAPIReader()
	for _, step := range []struct {
		name string
		do   func(context.Context, client.Client, client.Reader) error
	}{
		{"typed", typed},
		{"conflicts", conflicts},
		{"apply", apply},
		{"pages", pages},
		{"reconcile", reconcile},
	} {
		if err := step.do(ctx, manager.GetClient(), direct); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println(step.name)
	}
	stop()
	if err := <-ended; err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	return released(direct)
}

func until(ctx context.Context, what string, check func() (bool, error)) error {
	for {
		done, err := check()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// typed writes and reads built-in objects, in protobuf.
func typed(ctx context.Context, c client.Client, direct client.Reader) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "i",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
			},
		}}},
	}
	if err := c.Create(ctx, pod); err != nil {
		return err
	}
	if pod.UID == "" || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		return fmt.Errorf("no defaults: %+v", pod.Spec)
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	if err := c.Status().Update(ctx, pod); err != nil {
		return err
	}
	found := &corev1.Pod{}
	if err := direct.Get(ctx, client.ObjectKeyFromObject(pod), found); err != nil {
		return err
	}
	if found.Status.StartTime.Unix() != 1_700_000_000 || found.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() != 250 {
		return fmt.Errorf("read back: %+v", found)
	}
	patch := client.StrategicMergeFrom(found.DeepCopy())
	found.Labels["c"] = "d"
	if err := c.Patch(ctx, found, patch); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"}, Data: map[string][]byte{"k": {0, 255}},
	}
	if err := c.Create(ctx, secret); err != nil {
		return err
	}
	if secret.Data["k"][1] != 255 {
		return fmt.Errorf("secret: %v", secret.Data)
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := direct.Get(ctx, client.ObjectKeyFromObject(pod), partial); err != nil {
		return err
	}
	if partial.Labels["c"] != "d" {
		return fmt.Errorf("metadata: %+v", partial)
	}
	zero := int64(0)
	if err := c.Delete(ctx, pod, &client.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		return err
	}
	if err := direct.Get(ctx, client.ObjectKeyFromObject(pod), found); !apierrors.IsNotFound(err) {
		return fmt.Errorf("after the delete: %v", err)
	}
	return nil
}

// conflicts increments one object from many goroutines; nothing is lost.
func conflicts(ctx context.Context, c client.Client, direct client.Reader) error {
	key := types.NamespacedName{Namespace: "default", Name: "counter"}
	counter := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}}
	if err := c.Create(ctx, counter); err != nil {
		return err
	}
	const workers, each = 8, 5
	failures := make(chan error, workers)
	backoff := retry.DefaultBackoff
	backoff.Steps = 50
	for range workers {
		go func() {
			for range each {
				err := retry.RetryOnConflict(backoff, func() error {
					fresh := &corev1.ConfigMap{}
					if err := direct.Get(ctx, key, fresh); err != nil {
						return err
					}
					if fresh.Data == nil {
						fresh.Data = map[string]string{}
					}
					fresh.Data["n"] += "x"
					return c.Update(ctx, fresh)
				})
				if err != nil {
					failures <- err
					return
				}
			}
			failures <- nil
		}()
	}
	for range workers {
		if err := <-failures; err != nil {
			return err
		}
	}
	if err := direct.Get(ctx, key, counter); err != nil {
		return err
	}
	if len(counter.Data["n"]) != workers*each {
		return fmt.Errorf("%d of %d increments", len(counter.Data["n"]), workers*each)
	}
	return nil
}

func apply(ctx context.Context, c client.Client, direct client.Reader) error {
	config := applycorev1.ConfigMap("applied", "default").WithData(map[string]string{"a": "1"})
	if err := c.Apply(ctx, config, client.FieldOwner("one")); err != nil {
		return err
	}
	other := applycorev1.ConfigMap("applied", "default").WithData(map[string]string{"a": "2"})
	if err := c.Apply(ctx, other, client.FieldOwner("two")); !apierrors.IsConflict(err) {
		return fmt.Errorf("a conflict was due: %v", err)
	}
	if err := c.Apply(ctx, other, client.FieldOwner("two"), client.ForceOwnership); err != nil {
		return err
	}
	found := &corev1.ConfigMap{}
	if err := direct.Get(ctx, types.NamespacedName{Namespace: "default", Name: "applied"}, found); err != nil {
		return err
	}
	if found.Data["a"] != "2" || len(found.ManagedFields) != 1 {
		return fmt.Errorf("applied: %+v", found)
	}
	return nil
}

func pages(ctx context.Context, c client.Client, direct client.Reader) error {
	for index := range 7 {
		name := fmt.Sprintf("page-%d", index)
		labels := map[string]string{"page": "yes"}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}}
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	count, token := 0, ""
	for {
		list := &corev1.ConfigMapList{}
		err := direct.List(ctx, list, client.MatchingLabels{"page": "yes"}, client.Limit(3), client.Continue(token))
		if err != nil {
			return err
		}
		count += len(list.Items)
		if token = list.Continue; token == "" {
			break
		}
	}
	if count != 7 {
		return fmt.Errorf("%d of 7 objects", count)
	}
	return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"page": "yes"})
}

// reconcile lets the controller follow a Widget through its life.
func reconcile(ctx context.Context, c client.Client, direct client.Reader) error {
	widget := newWidget()
	widget.SetName("w")
	widget.SetNamespace("default")
	widget.Object["spec"] = map[string]any{"replicas": int64(2)}
	if err := c.Create(ctx, widget); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(widget)
	deployment := &appsv1.Deployment{}
	if err := until(ctx, "the Deployment", func() (bool, error) {
		err := direct.Get(ctx, key, deployment)
		return err == nil && *deployment.Spec.Replicas == 2, client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	deployment.Status.ReadyReplicas, deployment.Status.Replicas = 2, 2
	if err := c.Status().Update(ctx, deployment); err != nil {
		return err
	}
	if err := until(ctx, "the status", func() (bool, error) {
		err := direct.Get(ctx, key, widget)
		ready, _, _ := unstructured.NestedInt64(widget.Object, "status", "readyReplicas")
		return ready == 2, err
	}); err != nil {
		return err
	}
	change, _ := json.Marshal(map[string]any{"spec": map[string]any{"replicas": 3}})
	if err := c.Patch(ctx, widget, client.RawPatch(types.MergePatchType, change)); err != nil {
		return err
	}
	if err := until(ctx, "three replicas", func() (bool, error) {
		err := direct.Get(ctx, key, deployment)
		return *deployment.Spec.Replicas == 3, err
	}); err != nil {
		return err
	}
	if err := c.Delete(ctx, widget); err != nil {
		return err
	}
	return until(ctx, "the end", func() (bool, error) {
		gone := apierrors.IsNotFound(direct.Get(ctx, key, widget))
		return gone && apierrors.IsNotFound(direct.Get(ctx, key, deployment)), nil
	})
}

// released tells whether the lease was given back.
func released(direct client.Reader) error {
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
	key := types.NamespacedName{Namespace: "default", Name: "interop.example.com"}
	if err := direct.Get(context.Background(), key, lease); err != nil {
		return err
	}
	if holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); holder != "" {
		return fmt.Errorf("the lease is still held by %q", holder)
	}
	return nil
}
