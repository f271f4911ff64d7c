// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fluxtest

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/controllertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// Namespace is the namespace of Flux.
const Namespace = "flux-system"

// Flux is a running Flux.
type Flux struct {
	*mirrortest.Objects
}

// Start installs Flux in a cluster, and runs it until the test ends. The first call builds the controllers, which takes minutes. Each has
// the rights and the account that Flux's own installation gives it.
func Start(t testing.TB, cluster *devcluster.Cluster) *Flux {
	t.Helper()
	f := &Flux{Objects: mirrortest.ObjectsOf(t, cluster.Admin())}
	f.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+Namespace+"}}")
	source, kustomize := &controllertest.Controller{Name: "source-controller"}, &controllertest.Controller{Name: "kustomize-controller"}
	storage := testkit.FreeAddress(t)
	source.Flags = []string{"--storage-path=" + t.TempDir(), "--storage-addr=" + storage, "--storage-adv-addr=" + storage}
	kustomize.Flags = []string{"--no-remote-bases"}
	for tool, controller := range map[*programs.Tool]*controllertest.Controller{
		&programs.SourceController: source, &programs.KustomizeController: kustomize,
	} {
		health := testkit.FreeAddress(t)
		controller.Namespace, controller.Env = Namespace, []string{"RUNTIME_NAMESPACE=" + Namespace}
		controller.Ready = controllertest.Healthy("http://" + health + "/readyz")
		controller.Flags = append(controller.Flags, "--health-addr="+health, "--metrics-addr=0")
		controller.Install(t, cluster, *tool)
		controller.Start(t)
	}
	return f
}
