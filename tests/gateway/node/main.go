// Command node stands in for the nodes of a cluster and for the controllers of Deployments, EndpointSlices and namespaces. It runs each
// pod of a Deployment as a process in a network namespace of its own, with the echo server of the conformance suite for any image.
//
//	node KUBECONFIG ECHO DIRECTORY
//
// It needs root, and its network namespace is the "node": pods are reached through pairs of virtual interfaces. It removes no
// interface or namespace at its end: run it in a namespace that ends with it.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: node KUBECONFIG ECHO DIRECTORY")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	changed := make(chan struct{}, 1)
	signalChange := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	node := newNode(client, objects, factory, os.Args[2], os.Args[3])
	if err := node.register(ctx); err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(node.logs.serve()) }()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signalChange() },
		UpdateFunc: func(any, any) { signalChange() },
		DeleteFunc: func(any) { signalChange() },
	}
	for _, informer := range node.informers() {
		if _, err := informer.AddEventHandler(handler); err != nil {
			log.Fatal(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		if err := node.reconcile(ctx); err != nil && ctx.Err() == nil {
			log.Print(err)
			time.AfterFunc(100*time.Millisecond, signalChange)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			node.stop()
			return
		}
	}
}
