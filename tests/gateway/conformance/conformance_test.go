// Package conformance runs the conformance suite of the Gateway API against the cluster of KUBECONFIG. The options are the suite's flags.
package conformance

import (
	"flag"
	"testing"
	"time"

	"sigs.k8s.io/gateway-api/conformance"
)

// The suite waits up to three minutes for each condition: much longer than this controller ever needs, and most of the time of a run
// with failures.
var patience = flag.Duration("patience", 15*time.Second, "the longest time to wait for a condition or for consistent answers")

func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	timeouts := &options.TimeoutConfig
	for _, timeout := range []*time.Duration{
		&timeouts.CreateTimeout,
		&timeouts.DeleteTimeout,
		&timeouts.GetTimeout,
		&timeouts.GatewayMustHaveAddress,
		&timeouts.GatewayMustHaveCondition,
		&timeouts.GatewayStatusMustHaveListeners,
		&timeouts.GatewayListenersMustHaveConditions,
		&timeouts.ListenerSetMustHaveCondition,
		&timeouts.ListenerSetListenersMustHaveConditions,
		&timeouts.GWCMustBeAccepted,
		&timeouts.HTTPRouteMustNotHaveParents,
		&timeouts.HTTPRouteMustHaveCondition,
		&timeouts.TLSRouteMustHaveCondition,
		&timeouts.RouteMustHaveParents,
		&timeouts.MaxTimeToConsistency,
		&timeouts.LatestObservedGenerationSet,
		&timeouts.DefaultTestTimeout,
	} {
		*timeout = min(*timeout, *patience)
	}
	timeouts.NamespacesMustBeReady = 4 * *patience
	timeouts.DefaultPollInterval = 50 * time.Millisecond
	conformance.RunConformanceWithOptions(t, options)
}
