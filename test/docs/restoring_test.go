// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

const restoringPage = "docs/restoring.md"

// TestRestoring follows the page, and that on the history. A deleted namespace must be restored completely, with kubectl and with the
// plugin, and an empty cluster must get all objects of the mirrored one.
func TestRestoring(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	build(t)
	// Only audit events name the author of a deletion, and they may be late on a busy machine.
	lost := &mirroredCluster{clustertest.Start(t, devcluster.Options{
		Server: true, Audit: true, ServerArgs: []string{longestWait},
		APIServerArgs: []string{"--audit-webhook-batch-max-wait=1s"},
	})}
	r := newReader(t, ownServer(lost.Cluster))
	r.setenv(t, lost.Environ()...)
	r.setenv(t, "GIT_PASSWORD=any", "PATH="+strings.Join([]string{
		filepath.Dir(lost.Env(devcluster.EnvKubectl)), filepath.Join(root, "bin"), filepath.Dir(sopstest.Command(t)), "/usr/local/bin:/usr/bin:/bin",
	}, ":"))
	mirroring, restoring := splitAt(t, root, restoringPage, "## A namespace")
	ofNamespace, ofCluster := splitAt(t, root, restoringPage, "## A whole cluster")

	lost.kubectl(t, "apply", "-f", "testdata/restoring-namespace.yaml")
	r.follow(t, mirroring)
	tree := lost.clone(t)
	want := canonical(t, lost.Cluster, tree)
	lost.kubectl(t, "delete", "namespace", "shop", "--timeout=10m")
	r.follow(t, restoring[:len(ofNamespace)-len(mirroring)])
	sameObjects(t, want, canonical(t, lost.Cluster, tree))
	lost.findAndPutBack(t, r)
	sameObjects(t, want, canonical(t, lost.Cluster, tree))

	lost.fill(t)
	tree = lost.clone(t)
	leaveOut(t, tree)
	want = canonical(t, lost.Cluster, tree)
	empty := clustertest.Start(t, devcluster.Options{})
	r.setenv(t, "KUBECONFIG="+empty.Env(devcluster.EnvKubeconfig))
	r.follow(t, ofCluster)
	sameObjects(t, want, canonical(t, empty, tree))
	if nodes, err := empty.Kubectl(empty.Admin()).Run(t.Context(), "get", "nodes", "-o", "name"); nodes != "" || err != nil {
		t.Errorf("nodes of the old cluster were restored: %s%v", nodes, err)
	}
}

// mirroredCluster is the cluster that the page mirrors.
type mirroredCluster struct {
	*devcluster.Cluster
}

func (c *mirroredCluster) kubectl(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := c.Kubectl(c.Admin()).Run(t.Context(), arguments...); err != nil {
		t.Fatal(err)
	}
}

// fill adds more objects to the cluster, among them an unavailable APIService and a webhook that does not run.
func (c *mirroredCluster) fill(t *testing.T) {
	t.Helper()
	c.kubectl(t, "apply", "-f", "../fidelity/testdata/builtin/namespaces.yaml")
	c.kubectl(t, "apply", "-f", "../fidelity/testdata/builtin")
	c.kubectl(t, "wait", "crd", "--all", "--for=condition=Established", "--timeout=10m")
	c.kubectl(t, "create", "-f", "../fidelity/testdata/custom/gauges.yaml")
	c.kubectl(t, "apply", "-f", "testdata/restoring-cluster.yaml")
}

// clone clones the mirror when it equals the cluster, and returns its folder.
func (c *mirroredCluster) clone(t *testing.T) string {
	t.Helper()
	mirrortest.InSync(t, c.Kubectl(c.Admin()), "mirror", "cluster")
	folder := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", c.Env(devcluster.EnvGitURL)+"/cluster.git", folder).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(folder, "cluster")
}

// leaveOut removes from a clone the objects that are not restored to another cluster.
func leaveOut(t *testing.T, tree string) {
	t.Helper()
	for _, pattern := range []string{"configbutler.ai", "core/v1/nodes", "*/*/*/kube-system", "*/*/*/slipstream-system"} {
		folders, err := filepath.Glob(filepath.Join(tree, pattern))
		if err != nil || len(folders) == 0 {
			t.Fatalf("mirror has no folder %s: %v", pattern, err)
		}
		for _, folder := range folders {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// canonical returns the objects of the files in the cluster, in canonical form.
func canonical(t *testing.T, cluster *devcluster.Cluster, tree string) map[string]string {
	t.Helper()
	out, err := cluster.Kubectl(cluster.Admin()).Run(t.Context(),
		"get", "--recursive", "-f", tree, "--ignore-not-found", "--show-managed-fields", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list unstructured.UnstructuredList
	if err := utiljson.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	objects := map[string]string{}
	for i := range list.Items {
		content, err := manifest.Render(&list.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		each := list.Items[i]
		objects[each.GroupVersionKind().GroupKind().String()+" "+each.GetNamespace()+"/"+each.GetName()] = string(content)
	}
	return objects
}

// sameObjects compares the objects of two clusters.
func sameObjects(t *testing.T, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); len(want) == 0 || diff != "" {
		t.Errorf("of %d objects these differ (-mirrored +restored):\n%s", len(want), diff)
	}
}
