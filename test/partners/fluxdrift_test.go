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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/fluxtest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// apps are the manifests that users have in a repository of their own.
const apps = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: drift}
data: {color: %s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: drift}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "shop/web:1.8"}]}
`

// byFlux is the author of what Flux applies.
const byFlux = "system:serviceaccount:flux-system:kustomize-controller"

// driftMarks checks which changes of objects that Flux manages are marked as bypassing it: those by hand, and not those of Flux itself.
func (o *origin) driftMarks(t *testing.T, flux *fluxtest.Flux) {
	flux.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: drift}}")
	commit := o.pushApps(t, "red")
	flux.Apply(t, fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: apps, namespace: flux-system}
spec: {interval: 2s, url: %s/apps.git, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {interval: 1h, path: ./, prune: true, sourceRef: {kind: GitRepository, name: apps}}
`, o.Env(devcluster.EnvGitURL)))
	flux.Applied(t, "apps", commit)
	o.Apply(t, people.In("drift", "edit", "jane"))
	jane := people.New(t, o.Cluster, "jane")

	o.changed(t, "settings", 1, "Create", byFlux, false)
	jane.Run(t, "patch", "configmap", "settings", "-n", "drift", "-p", `{"data":{"color":"blue"}}`)
	o.changed(t, "settings", 2, "Update", "jane", true)
	flux.ApplyAgain(t, "apps")
	flux.HasField(t, "drift", "configmap/settings", "{.data.color}", "red")
	o.changed(t, "settings", 3, "Update", byFlux, false)
	flux.Applied(t, "apps", o.pushApps(t, "green"))
	o.changed(t, "settings", 4, "Update", byFlux, false)

	jane.Run(t, "set", "image", "deployment/web", "-n", "drift", "web=shop/web:1.9")
	o.changed(t, "web", 2, "Update", "jane", true)
	jane.Run(t, "delete", "deployment", "web", "-n", "drift")
	o.changed(t, "web", 3, "Delete", "jane", true)
	flux.ApplyAgain(t, "apps")
	o.changed(t, "web", 4, "Create", byFlux, false)

	events, err := flux.Try.Events(t.Context(), "drift", "involvedObject.name=settings")
	if err != nil || strings.Count(events, "jane changed this object, which Kustomization flux-system/apps (Flux) manages") != 1 {
		t.Errorf("Events (%v): %s", err, events)
	}
	log, err := o.Git(t.Context(), "log", "--format=%(trailers:key=X-ConfigButler-Bypass,valueonly)", "main", "--", o.Folder+"/*/drift/*")
	if err != nil || strings.Count(log, "Kustomization flux-system/apps (Flux)") != 3 {
		t.Errorf("trailers (%v): %s", err, log)
	}
	counted, err := o.Counted(t.Context(), `slipstream_bypassed_changes_total`)
	if err != nil || counted != 3 {
		t.Errorf("%v bypasses were counted, want 3 (%v)", counted, err)
	}
}

// pushApps pushes the users' manifests, and returns the commit.
func (o *origin) pushApps(t *testing.T, color string) (commit string) {
	t.Helper()
	clone := t.TempDir()
	file := filepath.Join(clone, "apps.yaml")
	script := `set -e; cd "$0"; git init -q -b main .; git fetch -q "$1" main && git reset -q --hard FETCH_HEAD || true
cat > apps.yaml; git add apps.yaml; git -c user.name=Dana -c user.email=dana@example.com commit -qm "Paint"; git push -q "$1" main`
	push := exec.CommandContext(t.Context(), "sh", "-c", script, clone, o.Env(devcluster.EnvGitURL)+"/apps.git")
	push.Stdin = strings.NewReader(fmt.Sprintf(apps, color))
	if out, err := push.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "git", "-C", clone, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// changed waits until the newest of so many Changes of an object of the namespace drift is one by a user, and of what Flux manages, and checks
// its mark.
func (o *origin) changed(t *testing.T, name string, number int, operation, by string, bypass bool) {
	t.Helper()
	changes := people.Admin(t, o.Cluster).Own.ConfigbutlerV1alpha1().Changes("drift")
	mirrortest.Eventually(t, fmt.Sprintf("%s of %s by %s is recorded", operation, name, by), func(ctx context.Context) error {
		list, err := changes.List(ctx, metav1.ListOptions{FieldSelector: "object.name=" + name})
		if err != nil {
			return err
		}
		if len(list.Items) != number {
			return fmt.Errorf("%d Changes, want %d", len(list.Items), number)
		}
		newest := list.Items[0].Spec
		want := v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByFlux, Kind: "Kustomization", Namespace: fluxtest.Namespace, Name: "apps"}
		if string(newest.Operation) != operation || newest.Author == nil || newest.Author.Username != by || newest.Bypass != bypass ||
			newest.ManagedBy == nil || *newest.ManagedBy != want {
			t.Errorf("the newest is %s by %+v, bypass %t, managed by %+v; want %s by %s, bypass %t",
				newest.Operation, newest.Author, newest.Bypass, newest.ManagedBy, operation, by, bypass)
		}
		return nil
	})
}
