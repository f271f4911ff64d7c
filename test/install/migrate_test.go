// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/upgradetest"
)

// testMigrate migrates a release from files to etcd with two replicas and back, with the commands of the page and an open informer.
func testMigrate(t *testing.T, s *testCluster) {
	defer s.remove(t)
	etcd := s.emptyEtcd(t)
	const held = holdings("moved")
	s.Apply(t, restrictedNamespace+"---"+held.namespaces())
	s.release(t, held.values()...)
	m := s.fill(t, held)
	before, commits, informed := s.settled(t), m.commits(t), s.inform(t, m.namespace)
	onEtcd := func(backend, prefix string) string {
		return s.valuesFile(t, held.values("replicas=1", fmt.Sprintf(
			`storage={"backend": %q, "etcd": {"servers": ["http://%s"], "prefix": %q}}`, backend, etcdAddress, prefix))...)
	}
	steps := s.stepsOfPage(t)

	_, err := s.shell(t, steps.move, onEtcd("etcd3", "/slipstream"))
	wantMessage(t, "while a server runs", fmt.Sprint(err), "storage.migrate.from needs all servers stopped, but the Pod slipstream-")
	s.steps(t, steps.stop, "")
	if _, err = s.shell(t, steps.move, onEtcd("etcd3", "/other")); err == nil {
		t.Error("migration to another prefix succeeded")
	}
	wantMessage(t, "another prefix", s.migrationMessage(t), "--etcd-prefix=/other must be /slipstream", "storage.etcd.prefix of the chart")

	values := onEtcd("etcd3", "/slipstream")
	s.steps(t, steps.move, values)
	s.steps(t, strings.Replace(steps.start, "-f slipstream-values.yaml", "-f slipstream-values.yaml --set replicas=2", 1), values)
	s.expectMigrated(t, m, informed, before, commits, "etcd")
	if pods := s.pods(t); len(pods) != 2 {
		t.Errorf("Pods = %v, want two servers", pods)
	}
	s.checkEncryption(t, etcd, m.namespace)

	before, commits = s.settled(t), m.commits(t)
	s.steps(t, steps.stop, "")
	back := strings.Replace(steps.move, "migrate.from=bbolt", "migrate.from=etcd3", 1)
	if _, err = s.shell(t, back, onEtcd("bbolt", "/slipstream")); err == nil {
		t.Error("files were replaced without replaceTarget")
	}
	wantMessage(t, "existing files", s.migrationMessage(t), "the target is not empty", "storage.migrate.replaceTarget of the chart")
	s.steps(t, back+" --set storage.migrate.replaceTarget=true", onEtcd("bbolt", "/slipstream"))
	s.steps(t, steps.start, s.valuesFile(t, held.values()...))
	s.expectMigrated(t, m, informed, before, commits, "files")
}

// emptyEtcd returns a client of the etcd after deleting the rows of other tests.
func (s *testCluster) emptyEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.EtcdURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, prefix := range []string{"/slipstream/", "/slipstream-work/"} {
		if _, err := client.Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}
	return client
}

// migrationSteps are commands of the page, one per line.
type migrationSteps struct {
	stop, move, start string
}

// stepsOfPage returns the commands of the page for a migration.
func (s *testCluster) stepsOfPage(t *testing.T) migrationSteps {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(s.root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Moving to etcd and back\n")
	_, text, _ = strings.Cut(text, "\n```console\n")
	text, _, _ = strings.Cut(text, "\n```\n")
	lines := strings.Split(strings.ReplaceAll(text, "$ ", ""), "\n")
	move := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "storage.migrate.from") })
	// kubectl logs requires a kubelet and is skipped.
	if move < 1 || len(lines) < move+3 || !strings.HasPrefix(lines[move+1], "kubectl logs ") {
		t.Fatalf("unexpected steps of a migration:\n%s", text)
	}
	return migrationSteps{
		stop: strings.Join(lines[:move], "\n"), move: lines[move], start: strings.Join(lines[move+2:], "\n"),
	}
}

// valuesFile writes a file of values in the format of --set-json.
func (s *testCluster) valuesFile(t *testing.T, values ...string) string {
	t.Helper()
	var content strings.Builder
	for _, value := range values {
		name, json, _ := strings.Cut(value, "=")
		fmt.Fprintf(&content, "%s: %s\n", name, json)
	}
	file := filepath.Join(t.TempDir(), "slipstream-values.yaml")
	if err := os.WriteFile(file, []byte(content.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// shell runs commands of a page with another file of values.
func (s *testCluster) shell(t *testing.T, commands, values string) (string, error) {
	t.Helper()
	path := filepath.Dir(s.helm) + ":" + filepath.Dir(s.Administrator.Program) + ":/usr/local/bin:/usr/bin:/bin"
	return s.command(t.Context(), "", "bash", "-ec", "PATH="+path+"\n"+strings.ReplaceAll(commands, "slipstream-values.yaml", values))
}

// steps runs commands of a page, which must succeed.
func (s *testCluster) steps(t *testing.T, commands, values string) {
	t.Helper()
	if out, err := s.shell(t, commands, values); err != nil {
		t.Fatalf("%v\n%s\nmigration: %s\n%s", err, out, s.migrationMessage(t), s.describe(t))
	}
}

// migrationMessage returns the termination message of a failed migration.
func (s *testCluster) migrationMessage(t *testing.T) string {
	t.Helper()
	return s.Run(t, "get", "pods", "-n", namespace, "-l", "app.kubernetes.io/component=migrate",
		"-o", "jsonpath={.items[*].status.containerStatuses[*].state.terminated.message}")
}

func wantMessage(t *testing.T, when, message string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(message, text) {
			t.Errorf("%s: %q is missing in:\n%s", when, text, message)
		}
	}
}

// expectMigrated expects all objects to be unchanged and the server to work. The server reports the attribution of authors only after a
// change, so one is made outside of the mirrored namespaces.
func (s *testCluster) expectMigrated(t *testing.T, m *mirror, i *informed, before map[string]upgradetest.Object, commits, where string) {
	t.Helper()
	s.available(t)
	i.waitForChange(t, where)
	changes := 0
	mirrortest.Eventually(t, "all objects are unchanged", func(ctx context.Context) error {
		changes++
		_, err := s.Administrator.Run(ctx, "annotate", "configmap/kube-root-ca.crt", "-n", "default",
			"--overwrite", fmt.Sprint("change=", where, changes))
		if err != nil {
			return err
		}
		now, err := s.objects(ctx)
		if difference := cmp.Diff(before, now); err == nil && difference != "" {
			err = fmt.Errorf("objects differ (- before, + now):\n%s", difference)
		}
		return err
	})
	if now := m.commits(t); now != commits {
		t.Errorf("commits after the migration:\n%s\nwant\n%s", now, commits)
	}
	m.expectWorking(t)
}

// waitForChange fails the test unless the informer gets a change and got no deletion before.
func (i *informed) waitForChange(t *testing.T, change string) {
	t.Helper()
	i.Run(t, "annotate", "gitrepoconfig/main", "-n", i.namespace, "--overwrite", numberAnnotation+"="+change)
	mirrortest.Eventually(t, "the informer gets the change "+change, func(context.Context) error {
		known, err := i.lister.ByNamespace(i.namespace).Get("main")
		if err == nil && known.(metav1.Object).GetAnnotations()[numberAnnotation] != change {
			err = fmt.Errorf("annotations = %v", known.(metav1.Object).GetAnnotations())
		}
		return err
	})
	if deleted := i.deleted.Load(); deleted > 0 {
		t.Errorf("informer got %d deletions", deleted)
	}
}

// checkEncryption expects an object to be encrypted with a key in the servers' Secret.
func (s *testCluster) checkEncryption(t *testing.T, etcd *clientv3.Client, name string) {
	t.Helper()
	stored, err := etcd.Get(t.Context(), "/slipstream/configbutler.ai/gitrepoconfigs/"+name+"/main")
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("rows in etcd: %v, %v", stored, err)
	}
	keys := s.Run(t, "get", "secret/slipstream-encryption", "-n", namespace,
		"-o", `go-template={{index .data "encryption.yaml" | base64decode}}`)
	_, key, _ := strings.Cut(encryption.EncryptedBy(stored.Kvs[0].Value), `"`)
	if key = strings.TrimSuffix(key, `"`); key == "" || !strings.Contains(keys, "name: "+key+"\n") {
		t.Errorf("object is encrypted with %q, which is not in the Secret", encryption.EncryptedBy(stored.Kvs[0].Value))
	}
}
