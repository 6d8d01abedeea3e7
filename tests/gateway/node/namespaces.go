package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reconcileNamespaces deletes the objects of namespaces that are being deleted, then the namespaces.
func (n *node) reconcileNamespaces(ctx context.Context) error {
	namespaces, err := n.factory.Core().V1().Namespaces().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	var errs []error
	for _, namespace := range namespaces {
		if namespace.DeletionTimestamp != nil && len(namespace.Spec.Finalizers) > 0 {
			errs = append(errs, n.finalize(ctx, namespace))
		}
	}
	return errors.Join(errs...)
}

func (n *node) finalize(ctx context.Context, namespace *corev1.Namespace) error {
	kinds, err := n.client.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return err
	}
	now := int64(0)
	for _, list := range kinds {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, kind := range list.APIResources {
			for _, verb := range kind.Verbs {
				if verb != "deletecollection" {
					continue
				}
				objects := n.objects.Resource(version.WithResource(kind.Name)).Namespace(namespace.Name)
				err := objects.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
				if ignoreRaces(err) != nil {
					return err
				}
			}
		}
	}
	namespace = namespace.DeepCopy()
	namespace.Spec.Finalizers = nil
	_, err = n.client.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	return ignoreRaces(err)
}
