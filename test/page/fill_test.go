// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// shop is production: two workloads and what they use.
const shop = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}
---
{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {TOKEN: ` + secretValue + `}}
---
` + workload + "---\n" + worker

const (
	workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 1
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - {name: main, image: 'shop/api:1', envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: setup}}], resources: {limits: {memory: 64Mi}}}
`
	worker = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 1
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: main, image: 'shop/worker:1'}]}
`
	// secretValue is the value of a Secret, which no page shows.
	secretValue = "hunter2-of-production"
	// imageAndMemory is a patch that sets image and memory limit.
	imageAndMemory = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q,"resources":{"limits":{"memory":%q}}}]}}}}`
)

// environments are the environments of the team, each in a target namespace of its own name, with more lines of their specs.
var environments = map[string]string{
	"alice": "autoSync: true",                                                   // in sync
	"bob":   "",                                                                 // behind
	"carol": "",                                                                 // failed
	"dana":  "type: Branch\n  branchWorkloads: [{kind: Deployment, name: api}]", // with a conflict
	"erin":  "",                                                                 // not synced yet
}

// olderChanges is the number of changes that come first. They are more than the page has before it reads older ones.
const olderChanges = 210

// fill creates what the screens show.
func (s *testCluster) fill(t *testing.T) {
	t.Helper()
	s.fillProduction(t)
	s.fillTeam(t)
	s.fillPipeline(t)
	s.fillHistory(t)
	s.fillHostile(t)
	s.settle(t)
}

// fillProduction creates the source, which is mirrored.
func (s *testCluster) fillProduction(t *testing.T) {
	t.Helper()
	s.mirror = s.NewMirror(t, production)
	s.Patch(t, production, "gitrepoconfig/main", `{"spec":{"push":{"interval":"100ms"}}}`)
	s.Apply(t, people.In(production, "admin", ann)+people.In(production, "edit", eve)+namespace(team)+people.In(team, "slipstream-view", tim))
	s.mirror.Watch(t, "all", "configmaps", "deployments", "secrets")
	var older strings.Builder
	for i := range olderChanges {
		fmt.Fprintf(&older, "{apiVersion: v1, kind: ConfigMap, metadata: {name: older-%03d}}\n---\n", i)
	}
	s.person(t, ann).ApplyIn(t, production, older.String()+shop)
}

// fillTeam creates a catalog and environments of all states.
func (s *testCluster) fillTeam(t *testing.T) {
	t.Helper()
	j := s.person(t, jane)
	j.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: %s}
spec:
  sourceNamespace: %s
  secrets: Shared
  workloads: [{kind: Deployment, name: api}, {kind: Deployment, name: worker}]
`, team, production))
	s.Ready(t, team, "cat/shop")
	for name, lines := range environments {
		s.CreateNamespace(t, name)
		j.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  catalogRef: {name: shop}
  targetNamespace: %[1]s
  %[3]s
`, name, team, lines))
	}
	s.ConfigMap(t, "carol", "settings", "foreign: 'yes'") // Not written by an environment, so the sync fails.
	for _, name := range []string{"bob", "carol", "dana"} {
		s.sync(t, name)
	}
	s.hasState(t, "alice", "Synced")
	s.hasState(t, "bob", "Synced")
	s.hasState(t, "dana", "Synced")
	s.patchDeployment(t, jane, "dana", "api", fmt.Sprintf(imageAndMemory, "shop/api:dana", "1Gi"))
	s.patchDeployment(t, ann, production, "api", fmt.Sprintf(imageAndMemory, "shop/api:2", "128Mi"))
	s.hasState(t, "dana", "1 workload changed")
	s.sync(t, "dana")
}

// settle waits for the states that the screens are expected to show.
func (s *testCluster) settle(t *testing.T) {
	t.Helper()
	for name, state := range map[string]string{
		"alice": "Synced", "bob": "1 workload changed", "carol": "Failed", "dana": "Conflict: 2 fields", "erin": "Not synced yet",
	} {
		s.hasState(t, name, state)
	}
	s.mirror.Settled(t)
}

// sync has jane request a sync.
func (s *testCluster) sync(t *testing.T, environment string) {
	t.Helper()
	path := "/apis/configbutler.ai/v1alpha1/namespaces/" + team + "/environments/" + environment + "/sync"
	if _, err := s.person(t, jane).Try.Post(t.Context(), path, "{}"); err != nil {
		t.Fatal(err)
	}
}

// hasState waits until the STATE of an environment has a prefix.
func (s *testCluster) hasState(t *testing.T, environment, state string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("environment %s has the state %q", environment, state), func(ctx context.Context) error {
		got, err := s.Try.Cell(ctx, team, "envt/"+environment, "STATE")
		if err == nil && !strings.HasPrefix(got, state) {
			err = fmt.Errorf("state %q", got)
		}
		return err
	})
}

// patchDeployment has a user patch a Deployment.
func (s *testCluster) patchDeployment(t *testing.T, by, namespace, name, patch string) {
	t.Helper()
	_, err := s.person(t, by).Client.AppsV1().Deployments(namespace).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "kubectl-patch"})
	if err != nil {
		t.Fatal(err)
	}
}

// fillPipeline creates a pipeline to the receiver of the cluster.
func (s *testCluster) fillPipeline(t *testing.T) {
	t.Helper()
	s.person(t, jane).Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: index}
spec:
  customResourceDefinitions: {enabled: false}
  instances: {resources: [configmaps]}
  sinks: [{name: receiver, http: {format: CloudEvents, url: %q}}]
`, s.Env(devcluster.EnvReceiverURL)))
	s.Ready(t, "", "pipe/index")
}

// handChange is a change of a ConfigMap of production, whose file contains before or after.
type handChange struct {
	name, before, after string
	// patch makes the change, and back takes it back.
	patch, back string
}

// changeAsEve has eve change a ConfigMap, and again after ann has taken it back, until the commit names her: on a busy machine, a change may
// have no author, because kube-apiserver waits only two seconds for its review.
func (s *testCluster) changeAsEve(t *testing.T, c handChange) {
	t.Helper()
	path := s.mirror.ConfigMapPath(c.name)
	mirrortest.Eventually(t, "a commit of "+c.name+" names eve", func(ctx context.Context) error {
		s.person(t, ann).Run(t, "patch", "configmap", c.name, "-n", production, "-p", c.back)
		s.mirror.Holds(t, path, c.before)
		s.person(t, eve).Run(t, "patch", "configmap", c.name, "-n", production, "-p", c.patch)
		s.mirror.Holds(t, path, c.after)
		commits, err := s.mirror.History(ctx, "", "-1", "--", s.mirror.Folder+"/"+path)
		if err == nil && commits[0].Author != eve {
			err = fmt.Errorf("the last one is %s", commits[0])
		}
		return err
	})
}

// fillHistory has several users change objects, one of them past the tool that manages the object.
func (s *testCluster) fillHistory(t *testing.T) {
	t.Helper()
	s.person(t, ann).Run(t, "create", "configmap", "note", "-n", production, "--from-literal=color=red", "--from-literal=size=1")
	s.changeAsEve(t, handChange{
		name: "note", before: "color: red", after: "color: blue",
		patch: `{"metadata":{"annotations":{"configbutler.ai/reason":"winter colors"}},"data":{"color":"blue"}}`,
		back:  `{"metadata":{"annotations":{"configbutler.ai/reason":null}},"data":{"color":"red"}}`,
	})
	s.person(t, ann).ApplyIn(t, production, `{apiVersion: v1, kind: ConfigMap, metadata: {name: managed,
  labels: {kustomize.toolkit.fluxcd.io/name: shop, kustomize.toolkit.fluxcd.io/namespace: flux-system}}, data: {a: "1"}}`)
	s.changeAsEve(t, handChange{name: "managed", before: `a: "1"`, after: `a: "2"`, patch: `{"data":{"a":"2"}}`, back: `{"data":{"a":"1"}}`})
	mirrortest.Eventually(t, "a bypass is recorded", func(ctx context.Context) error {
		all, err := s.person(t, jane).Own.ConfigbutlerV1alpha1().Changes(production).List(ctx, metav1.ListOptions{FieldSelector: "bypass=true"})
		if err == nil && len(all.Items) == 0 {
			err = fmt.Errorf("no Change has bypass=true")
		}
		return err
	})
}

// markup is text that runs a script if it is shown as HTML: it raises the flag that the scenarios check.
const markup = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`

// fillHostile writes markup into all fields that take it: names of users and field managers, annotations, keys, values, reasons, which
// become commit messages, images, and the responses of a sink, which become error texts.
func (s *testCluster) fillHostile(t *testing.T) {
	t.Helper()
	mallory := s.person(t, markup)
	s.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %s, name: mallory}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %q}]
`, production, markup))
	mallory.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: hostile
  namespace: %[1]s
  annotations: {configbutler.ai/reason: %[2]q, example.com/note: %[2]q}
data: {page.html: %[2]q}
`, production, markup))
	s.mirror.Holds(t, s.mirror.ConfigMapPath("hostile"), "page.html")
	_, err := mallory.Client.CoreV1().ConfigMaps(production).Patch(t.Context(), "hostile", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"configbutler.ai/reason":%[1]q}},"data":{"page.html":%[1]q}}`, "again "+markup),
		metav1.PatchOptions{FieldManager: markup})
	if err != nil {
		t.Fatal(err)
	}
	s.mirror.Holds(t, s.mirror.ConfigMapPath("hostile"), "again ")
	s.fillHostileShop(t)
	s.fillHostileSink(t)
}

// fillHostileShop creates an environment whose diff, state and annotations contain markup.
func (s *testCluster) fillHostileShop(t *testing.T) {
	t.Helper()
	s.Apply(t, namespace("hostile")+namespace("hostile-copy"))
	j := s.person(t, jane)
	j.ApplyIn(t, "hostile", worker)
	j.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: hostile, namespace: %[1]s, annotations: {example.com/note: %[2]q}}
spec:
  sourceNamespace: hostile
  workloads: [{kind: Deployment, name: worker}]
---
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: hostile, namespace: %[1]s, annotations: {example.com/note: %[2]q}}
spec:
  catalogRef: {name: hostile}
  targetNamespace: hostile-copy
  patches:
  - target: {kind: Deployment, name: worker}
    type: StrategicMerge
    patch: %[3]q
`, team, markup, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"example.com/note":%q}}}}}`, markup)))
	s.Ready(t, team, "cat/hostile")
	s.sync(t, "hostile")
	s.hasState(t, "hostile", "Synced")
	j.ApplyIn(t, "hostile", strings.ReplaceAll(worker, "shop/worker:1", markup))
	s.hasState(t, "hostile", "1 workload changed")
}

// fillHostileSink creates a pipeline whose sink rejects everything with markup, and a destination whose remote does.
func (s *testCluster) fillHostileSink(t *testing.T) {
	t.Helper()
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(markup)) // The server may have hung up.
	}))
	t.Cleanup(hostile.Close)
	s.person(t, jane).Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: hostile, annotations: {example.com/note: %[2]q}}
spec:
  customResourceDefinitions: {enabled: false}
  instances: {resources: [configmaps]}
  sinks: [{name: hostile, http: {format: CloudEvents, url: %[1]q}}]
---
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: hostile, namespace: %[3]s}
spec: {repoUrl: "%[1]s/hostile.git", allowedBranches: [main]}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: hostile, namespace: %[3]s}
spec: {repoRef: {name: hostile}, branch: main, baseFolder: hostile}
`, hostile.URL, markup, team))
}

func namespace(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name)
}
