// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

// TestArgoCD has Argo CD's own library compare a mirror with the mirrored cluster, and with another one to which it applies the mirror.
func TestArgoCD(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	tip := o.tip(t)
	a := o.newApplication(t)
	other := clustertest.Start(t, devcluster.Options{})
	t.Run("WithoutSecrets", func(t *testing.T) {
		expect(t, a.compare(t, o.Cluster), "Synced", objects*3/4)
		missing := a.compare(t, other)
		delete(missing, "/Namespace//default") // Each cluster has it.
		expect(t, missing, "Missing", objects*3/4)
	})
	t.Run("DecryptedSecrets", func(t *testing.T) {
		a.decryptSecrets(t, o.privateKey(t))
		expect(t, a.compare(t, o.Cluster), "Synced", objects)
		a.keepTeams(t, appliedTeams)
		expect(t, a.compare(t, other, "-application=shop", "-sync"), "Synced", objects*appliedTeams/teams)
		want := o.Field(t, "team-0", "secret/credentials-3", "{.data.password}")
		if got := mirrortest.ObjectsOf(t, other.Admin()).Field(t, "team-0", "secret/credentials-3", "{.data.password}"); got != want {
			t.Errorf("value of a Secret is %q, want %q", got, want)
		}
	})
	t.Run("ChangedByHand", func(t *testing.T) {
		mirrortest.ObjectsOf(t, other.Admin()).Patch(t, "team-1", "configmap/settings-3", `{"data":{"color":"by hand"}}`)
		differing := 0
		for object, state := range a.compare(t, other, "-application=shop") {
			if state != "Synced" {
				differing++
				if object != "/ConfigMap/team-1/settings-3" || state != "OutOfSync" {
					t.Errorf("%s is %s", object, state)
				}
			}
		}
		if differing != 1 {
			t.Errorf("%d objects differ, want that which was changed by hand", differing)
		}
	})
	if after := o.tip(t); after != tip {
		t.Errorf("the comparison changed the mirror from %s to %s", tip, after)
	}
}

// appliedTeams is the number of namespaces that are applied to the other cluster. Argo CD reads the whole discovery of a cluster for each
// object that it applies.
const appliedTeams = 2

// application is what the plugin prints for Argo CD, with a clone of the repository.
type application struct {
	program, folder, exclude string
}

// newApplication builds the program that compares, and clones the repository.
func (o *origin) newApplication(t *testing.T) *application {
	t.Helper()
	printed, err := clustertest.Plugin(t, o.Admin()).Run(t.Context(), "bootstrap", "argocd", "--destination", mirrorNamespace+"/main")
	if err != nil {
		t.Fatal(err)
	}
	source, _, _ := unstructured.NestedMap(parse(t, printed).Object, "spec", "source")
	folder, _, _ := unstructured.NestedString(source, "path")
	exclude, _, _ := unstructured.NestedString(source, "directory", "exclude")
	url, _, _ := unstructured.NestedString(source, "repoURL")
	branch, _, _ := unstructured.NestedString(source, "targetRevision")
	clone := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", "--branch", branch, url, clone).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v: %s", err, out)
	}
	return &application{program: buildArgoCD(t), folder: filepath.Join(clone, folder), exclude: exclude}
}

// buildArgoCD builds the program that compares. The first time takes minutes.
func buildArgoCD(t *testing.T) string {
	t.Helper()
	const limit = 40 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "argocd")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "test", "partners", "argocd"), "-o", program, ".")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("failed to build the program: %v: %s", err, out)
	}
	return program
}

// compare returns the state of each object in a cluster, by GROUP/KIND/NAMESPACE/NAME.
func (a *application) compare(t *testing.T, cluster *devcluster.Cluster, flags ...string) map[string]string {
	t.Helper()
	flags = append(flags, "-kubeconfig="+string(cluster.Admin()), "-folder="+a.folder, "-exclude="+a.exclude)
	command := exec.CommandContext(t.Context(), a.program, flags...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	states := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, " ") {
			t.Log(line)
			continue
		}
		state, object, _ := strings.Cut(strings.TrimSpace(line), " ")
		states[object] = state
	}
	return states
}

// expect expects that all objects have a state, and that there are at least so many.
func expect(t *testing.T, states map[string]string, want string, atLeast int) {
	t.Helper()
	for object, state := range states {
		if state != want {
			t.Errorf("%s is %s, want %s", object, state, want)
		}
	}
	t.Logf("%d objects", len(states))
	if len(states) < atLeast {
		t.Errorf("%d objects were compared, want at least %d", len(states), atLeast)
	}
}

// keepTeams removes the objects of the other namespaces from the clone.
func (a *application) keepTeams(t *testing.T, count int) {
	t.Helper()
	for number := count; number < teams; number++ {
		folders, err := filepath.Glob(filepath.Join(a.folder, "*", "*", "*", fmt.Sprint("team-", number)))
		if err != nil || len(folders) == 0 {
			t.Fatalf("%d folders of team-%d: %v", len(folders), number, err)
		}
		for _, folder := range folders {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// decryptSecrets decrypts the Secrets in the clone, as a plugin of Argo CD's repository server would, and no longer excludes them.
func (a *application) decryptSecrets(t *testing.T, key string) {
	t.Helper()
	const excluded = ",core/v1/secrets/*}"
	if !strings.HasSuffix(a.exclude, excluded) {
		t.Fatalf("Secrets are not excluded last: %s", a.exclude)
	}
	a.exclude = strings.TrimSuffix(a.exclude, excluded) + "}"
	err := filepath.WalkDir(filepath.Join(a.folder, "core/v1/secrets"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		decrypted, err := sopstest.Open(t, file, key)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return os.WriteFile(path, []byte(decrypted), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}
