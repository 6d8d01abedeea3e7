package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// node keeps pods, EndpointSlices and statuses in accord with Deployments and Services, and removes deleted namespaces.
type node struct {
	client    kubernetes.Interface
	objects   dynamic.Interface
	factory   informers.SharedInformerFactory
	echo      string
	directory string
	// The number of pods that were ever started.
	pods    int
	running map[string]*process
	logs    *logs
}

func newNode(client kubernetes.Interface, objects dynamic.Interface, factory informers.SharedInformerFactory, echo, directory string) *node {
	return &node{
		client: client, objects: objects, factory: factory, echo: echo, directory: directory,
		running: map[string]*process{}, logs: &logs{outputs: map[string]*output{}},
	}
}

func (n *node) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{
		n.factory.Apps().V1().Deployments().Informer(),
		n.factory.Core().V1().Namespaces().Informer(),
		n.factory.Core().V1().Pods().Informer(),
		n.factory.Core().V1().Services().Informer(),
		n.factory.Core().V1().Secrets().Informer(),
		n.factory.Discovery().V1().EndpointSlices().Informer(),
	}
}

// reconcile does all that is due. What fails does not keep the rest from being done.
func (n *node) reconcile(ctx context.Context) error {
	deployments, err := n.factory.Apps().V1().Deployments().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	for _, deployment := range deployments {
		errs = append(errs, n.reconcileDeployment(ctx, deployment))
	}
	errs = append(errs, n.reconcilePods(ctx), n.reconcileServices(ctx), n.reconcileNamespaces(ctx))
	return errors.Join(errs...)
}

// reconcileDeployment creates and deletes the pods of a Deployment and writes its status.
func (n *node) reconcileDeployment(ctx context.Context, deployment *appsv1.Deployment) error {
	wanted := 1
	if deployment.Spec.Replicas != nil {
		wanted = int(*deployment.Spec.Replicas)
	}
	ready := 0
	for i := range max(wanted, 20) {
		name := fmt.Sprintf("%s-6d5f7c9b4-%05d", deployment.Name, i)
		pod, err := n.factory.Core().V1().Pods().Lister().Pods(deployment.Namespace).Get(name)
		switch {
		case i < wanted && apierrors.IsNotFound(err):
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: name, Namespace: deployment.Namespace,
					Labels:          deployment.Spec.Template.Labels,
					Annotations:     deployment.Spec.Template.Annotations,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
				},
				Spec: *deployment.Spec.Template.Spec.DeepCopy(),
			}
			pod.Spec.NodeName = nodeName
			if _, err := n.client.CoreV1().Pods(deployment.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("pod %s: %w", name, err)
			}
		case i >= wanted && err == nil:
			if err := n.deletePod(ctx, pod); err != nil {
				return err
			}
		case err == nil && isReady(pod):
			ready++
		}
	}
	status := deployment.Status.DeepCopy()
	status.ObservedGeneration = deployment.Generation
	status.Replicas, status.UpdatedReplicas = int32(wanted), int32(wanted)
	status.ReadyReplicas, status.AvailableReplicas = int32(ready), int32(ready)
	status.UnavailableReplicas = int32(wanted - ready)
	if equality.Semantic.DeepEqual(status, &deployment.Status) {
		return nil
	}
	deployment = deployment.DeepCopy()
	deployment.Status = *status
	_, err := n.client.AppsV1().Deployments(deployment.Namespace).UpdateStatus(ctx, deployment, metav1.UpdateOptions{})
	return ignoreRaces(err)
}

// reconcilePods starts and ends the processes of pods. A pod without its Deployment is deleted.
func (n *node) reconcilePods(ctx context.Context) error {
	pods, err := n.factory.Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	present := map[string]bool{}
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			continue
		}
		deployment, err := n.factory.Apps().V1().Deployments().Lister().Deployments(pod.Namespace).Get(owner.Name)
		if pod.DeletionTimestamp != nil || apierrors.IsNotFound(err) || (err == nil && deployment.UID != owner.UID) {
			errs = append(errs, n.deletePod(ctx, pod))
			continue
		}
		present[string(pod.UID)] = true
		errs = append(errs, n.runPod(ctx, pod))
	}
	for uid, process := range n.running {
		if !present[uid] {
			process.end()
			delete(n.running, uid)
		}
	}
	return errors.Join(errs...)
}

func (n *node) runPod(ctx context.Context, pod *corev1.Pod) error {
	if n.running[string(pod.UID)] == nil {
		process, err := n.start(ctx, pod)
		if err != nil {
			if process != nil {
				process.end()
			}
			return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		n.running[string(pod.UID)] = process
	}
	if isReady(pod) {
		return nil
	}
	address := n.running[string(pod.UID)].address
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	_, err := n.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return ignoreRaces(err)
}

func (n *node) deletePod(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	return ignoreRaces(n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// reconcileServices writes an EndpointSlice for each Service with a selector, and deletes those of Services that do not exist.
func (n *node) reconcileServices(ctx context.Context) error {
	services, err := n.factory.Core().V1().Services().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	wanted := map[string]bool{}
	for _, service := range services {
		if len(service.Spec.Selector) == 0 {
			continue
		}
		wanted[service.Namespace+"/"+sliceName(service.Name)] = true
		errs = append(errs, n.reconcileSlice(ctx, service))
	}
	slices, err := n.factory.Discovery().V1().EndpointSlices().Lister().List(labels.SelectorFromSet(labels.Set{managedBy: manager}))
	if err != nil {
		return err
	}
	for _, slice := range slices {
		if !wanted[slice.Namespace+"/"+slice.Name] {
			errs = append(errs, ignoreRaces(n.client.DiscoveryV1().EndpointSlices(slice.Namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{})))
		}
	}
	return errors.Join(errs...)
}

const (
	managedBy = "endpointslice.kubernetes.io/managed-by"
	manager   = "node.tests.weir.dev"
)

func sliceName(service string) string { return service + "-node" }

func (n *node) reconcileSlice(ctx context.Context, service *corev1.Service) error {
	pods, err := n.factory.Core().V1().Pods().Lister().Pods(service.Namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return err
	}
	sort.Slice(pods, func(i, j int) bool { return pods[i].Name < pods[j].Name })
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: sliceName(service.Name), Namespace: service.Namespace,
			Labels:          map[string]string{discoveryv1.LabelServiceName: service.Name, managedBy: manager},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, port := range service.Spec.Ports {
		target := port.TargetPort.IntVal
		if port.TargetPort.Type == intstr.String || target == 0 {
			target = port.Port
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &target, Protocol: &port.Protocol, AppProtocol: port.AppProtocol})
	}
	for _, pod := range pods {
		if pod.Status.PodIP == "" {
			continue
		}
		ready, terminating := isReady(pod), pod.DeletionTimestamp != nil
		accepts := ready && !terminating
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{pod.Status.PodIP},
			Conditions: discoveryv1.EndpointConditions{Ready: &accepts, Serving: &ready, Terminating: &terminating},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		})
	}
	api := n.client.DiscoveryV1().EndpointSlices(service.Namespace)
	former, err := n.factory.Discovery().V1().EndpointSlices().Lister().EndpointSlices(service.Namespace).Get(slice.Name)
	if apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, slice, metav1.CreateOptions{})
		return ignoreRaces(err)
	}
	if err != nil || (equality.Semantic.DeepEqual(former.Endpoints, slice.Endpoints) && equality.Semantic.DeepEqual(former.Ports, slice.Ports) && maps.Equal(former.Labels, slice.Labels)) {
		return err
	}
	slice.ResourceVersion = former.ResourceVersion
	_, err = api.Update(ctx, slice, metav1.UpdateOptions{})
	return ignoreRaces(err)
}

// stop ends all processes.
func (n *node) stop() {
	for _, process := range n.running {
		process.end()
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ignoreRaces returns no error if the object has changed or was deleted: its event leads to the next attempt.
func ignoreRaces(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
