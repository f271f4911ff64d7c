// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/fluxtest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// TestFlux has Flux of another cluster follow a mirror with what the plugin prints. Then the mirrored cluster has a Flux of its own.
func TestFlux(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	t.Run("AnotherClusterFollows", o.followed)
	own := fluxtest.Start(t, o.Cluster)
	t.Run("DriftMarks", func(t *testing.T) { o.driftMarks(t, own) })
	t.Run("FollowsItsOwnMirror", func(t *testing.T) { o.followsItself(t, own) })
}

// The mirror of the tests, and the Kustomization that follows it.
const (
	mirrorNamespace = "mirror"
	kustomization   = mirrorNamespace + "-main"
)

// origin is a mirrored cluster with some hundred objects.
type origin struct {
	*mirrortest.AdminCluster
	*mirrortest.Mirror
}

// newOrigin starts a cluster, creates objects, and waits until they are mirrored.
func newOrigin(t *testing.T) *origin {
	t.Helper()
	s := mirrortest.NewAdminCluster(t, devcluster.Options{
		Audit: true, Parts: []string{"slipstream-server-mirrored", "slipstream-server-credentials"},
	})
	o := &origin{AdminCluster: s}
	o.fill(t)
	o.Mirror = s.NewMirror(t, mirrorNamespace, "granularity: PerChange", "accessPolicy: {allowClusterRules: true}")
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: all}
spec:
  destinationRef: {namespace: %s, name: main}
  rules:
  - name: cluster
    scope: Cluster
    resources: [namespaces, customresourcedefinitions, clusterroles, clusterrolebindings, priorityclasses, storageclasses]
  - name: preset
    scope: Namespaced
  - name: custom
    scope: Namespaced
    resources: [gauges.example.com]
`, mirrorNamespace))
	s.Ready(t, "", "clusterwatchrule/all")
	return o
}

// tip waits until everything is mirrored, and returns the commit.
func (o *origin) tip(t *testing.T) string {
	t.Helper()
	mirrortest.InSync(t, o.Administrator, mirrorNamespace, "main")
	out, err := o.Git(t.Context(), "rev-parse", "main")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// bootstrap follows the plugin's instructions for Flux in a cluster: it runs the commands in the comments, and returns the manifests.
func (o *origin) bootstrap(t *testing.T, in *devcluster.Cluster, flags ...string) (manifests string) {
	t.Helper()
	manifests, err := clustertest.Plugin(t, o.Admin()).Run(t.Context(),
		append([]string{"bootstrap", "flux", "--destination", mirrorNamespace + "/main"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	for line := range strings.Lines(manifests) {
		command, found := strings.CutPrefix(line, "#   ")
		if !found {
			continue
		}
		user := in.Admin()
		if strings.Contains(command, "get secret") { // The private key is in the mirrored cluster.
			user = o.Admin()
		}
		shell := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(command, "FILE", key))
		shell.Env = append(os.Environ(), "KUBECONFIG="+string(user), "PATH="+filepath.Dir(o.Env(devcluster.EnvKubectl))+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	return manifests
}

// followed has another cluster follow the mirror, and compares the two.
func (o *origin) followed(t *testing.T) {
	other := clustertest.Start(t, devcluster.Options{})
	flux := fluxtest.Start(t, other)
	manifests := o.bootstrap(t, other, "--interval=2s")
	flux.Apply(t, manifests)
	flux.Applied(t, kustomization, o.tip(t))
	same := func(t *testing.T, atLeast int) {
		t.Helper()
		o.same(t, newFollower(t, other, manifests, o.privateKey(t)), atLeast)
	}
	t.Run("Everything", func(t *testing.T) { same(t, objects) })
	t.Run("WhatIsLeftOut", func(t *testing.T) {
		for _, object := range []string{"configmap/of-this-cluster", "secret/of-this-cluster"} {
			if _, err := flux.Try.Get(t.Context(), "kube-system", object); err == nil {
				t.Errorf("%s of kube-system is in the other cluster", object)
			}
		}
	})
	t.Run("Changes", func(t *testing.T) {
		o.Patch(t, "team-0", "configmap/settings-0", `{"data":{"color":"changed"}}`)
		o.Patch(t, "team-0", "secret/credentials-0", `{"stringData":{"password":"rotated"}}`)
		o.Delete(t, "team-0", "configmap/settings-1", "secret/credentials-1")
		o.Run(t, "delete", "namespace", "team-1")
		flux.Applied(t, kustomization, o.tip(t))
		same(t, objects*4/5)
		flux.HasField(t, "team-0", "configmap/settings-0", "{.data.color}", "changed")
		for _, object := range []string{"configmap/settings-1", "secret/credentials-1"} {
			gone(t, flux, "team-0", object)
		}
		gone(t, flux, "", "namespace/team-1")
	})
}

// gone waits until an object does not exist.
func gone(t *testing.T, flux *fluxtest.Flux, namespace, object string) {
	t.Helper()
	mirrortest.Eventually(t, object+" is deleted", func(ctx context.Context) error {
		if _, err := flux.Try.Get(ctx, namespace, object); err == nil {
			return fmt.Errorf("%s exists", object)
		}
		return nil
	})
}
