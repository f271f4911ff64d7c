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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// testMigrate moves a release from files to an etcd with two replicas and back, as the page says, while somebody watches.
func testMigrate(t *testing.T, s *stage) {
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
	wantSaid(t, "while a server runs", fmt.Sprint(err), "storage.migrate.from needs all servers stopped, and the Pod slipstream-")
	s.steps(t, steps.stop, "")
	if _, err = s.shell(t, steps.move, onEtcd("etcd3", "/other")); err == nil {
		t.Error("everything was moved to another prefix")
	}
	wantSaid(t, "another prefix", s.saidByMigration(t), "--etcd-prefix=/other must be /slipstream", "storage.etcd.prefix of the chart")

	values := onEtcd("etcd3", "/slipstream")
	s.steps(t, steps.move, values)
	s.steps(t, strings.Replace(steps.start, "-f slipstream-values.yaml", "-f slipstream-values.yaml --set replicas=2", 1), values)
	s.moved(t, m, informed, before, commits, "etcd")
	if pods := s.pods(t); len(pods) != 2 {
		t.Errorf("there are the Pods %v, want two servers", pods)
	}
	s.sealedInEtcd(t, etcd, m.namespace)

	before, commits = s.settled(t), m.commits(t)
	s.steps(t, steps.stop, "")
	back := strings.Replace(steps.move, "migrate.from=bbolt", "migrate.from=etcd3", 1)
	if _, err = s.shell(t, back, onEtcd("bbolt", "/slipstream")); err == nil {
		t.Error("files were replaced unasked")
	}
	wantSaid(t, "files of before", s.saidByMigration(t), "the target is not empty", "storage.migrate.replaceTarget of the chart")
	s.steps(t, back+" --set storage.migrate.replaceTarget=true", onEtcd("bbolt", "/slipstream"))
	s.steps(t, steps.start, s.valuesFile(t, held.values()...))
	s.moved(t, m, informed, before, commits, "files")
}

// emptyEtcd is a client of the etcd, in which nothing is left of other scenes.
func (s *stage) emptyEtcd(t *testing.T) *clientv3.Client {
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

// migrationSteps are commands of the page, one a line.
type migrationSteps struct {
	stop, move, start string
}

// stepsOfPage finds the commands by which operators move a release.
func (s *stage) stepsOfPage(t *testing.T) migrationSteps {
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
	// What a Pod has logged is asked of its kubelet, and none is there.
	if move < 1 || len(lines) < move+3 || !strings.HasPrefix(lines[move+1], "kubectl logs ") {
		t.Fatalf("these are not the steps of a migration:\n%s", text)
	}
	return migrationSteps{
		stop: strings.Join(lines[:move], "\n"), move: lines[move], start: strings.Join(lines[move+2:], "\n"),
	}
}

// valuesFile is a file of values, each as --set-json takes it.
func (s *stage) valuesFile(t *testing.T, values ...string) string {
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

// shell runs commands of a page with a file of values in the place of the reader's.
func (s *stage) shell(t *testing.T, commands, values string) (string, error) {
	t.Helper()
	path := filepath.Dir(s.helm) + ":" + filepath.Dir(s.Administrator.Program) + ":/usr/local/bin:/usr/bin:/bin"
	return s.command(t.Context(), "", "bash", "-ec", "PATH="+path+"\n"+strings.ReplaceAll(commands, "slipstream-values.yaml", values))
}

// steps does so with commands that must not fail.
func (s *stage) steps(t *testing.T, commands, values string) {
	t.Helper()
	if out, err := s.shell(t, commands, values); err != nil {
		t.Fatalf("%v\n%s\nthe migration says: %s\n%s", err, out, s.saidByMigration(t), s.describe(t))
	}
}

// saidByMigration is the end of the log of a migration that failed.
func (s *stage) saidByMigration(t *testing.T) string {
	t.Helper()
	return s.Run(t, "get", "pods", "-n", namespace, "-l", "app.kubernetes.io/component=migrate",
		"-o", "jsonpath={.items[*].status.containerStatuses[*].state.terminated.message}")
}

func wantSaid(t *testing.T, when, said string, sentences ...string) {
	t.Helper()
	for _, sentence := range sentences {
		if !strings.Contains(said, sentence) {
			t.Errorf("%s: %q is not said:\n%s", when, sentence, said)
		}
	}
}

// moved wants everything to be as it was, and the server to do its work. That authors are reported it says once it has
// heard of a change while it leads: one is made where nothing is mirrored.
func (s *stage) moved(t *testing.T, m *mirror, i *informed, before map[string]object, commits, where string) {
	t.Helper()
	s.available(t)
	i.told(t, where)
	changes := 0
	mirrortest.Eventually(t, "all objects are as they were", func(ctx context.Context) error {
		changes++
		_, err := s.Administrator.Run(ctx, "annotate", "configmap/kube-root-ca.crt", "-n", "default", "--overwrite", fmt.Sprint("change=", where, changes))
		if err != nil {
			return err
		}
		now, err := s.objects(ctx)
		if difference := cmp.Diff(before, now); err == nil && difference != "" {
			err = fmt.Errorf("they differ (- before, + now):\n%s", difference)
		}
		return err
	})
	if now := m.commits(t); now != commits {
		t.Errorf("moving made commits:\n%s\nbefore it there were:\n%s", now, commits)
	}
	m.goesOn(t)
}

// told fails the test unless the controller is told of a change, and has not been told that anything is gone.
func (i *informed) told(t *testing.T, change string) {
	t.Helper()
	i.Run(t, "annotate", "gitrepoconfig/main", "-n", i.namespace, "--overwrite", numberAnnotation+"="+change)
	mirrortest.Eventually(t, "a controller that watches is told of "+change, func(context.Context) error {
		known, err := i.lister.ByNamespace(i.namespace).Get("main")
		if err == nil && known.(metav1.Object).GetAnnotations()[numberAnnotation] != change {
			err = fmt.Errorf("it knows of %v", known.(metav1.Object).GetAnnotations())
		}
		return err
	})
	if deleted := i.deleted.Load(); deleted > 0 {
		t.Errorf("it was told that %d objects are gone", deleted)
	}
}

// sealedInEtcd wants an object to be sealed under a key that is in the Secret of the servers.
func (s *stage) sealedInEtcd(t *testing.T, etcd *clientv3.Client, name string) {
	t.Helper()
	stored, err := etcd.Get(t.Context(), "/slipstream/configbutler.ai/gitrepoconfigs/"+name+"/main")
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("etcd has %v, %v", stored, err)
	}
	keys := s.Run(t, "get", "secret/slipstream-encryption", "-n", namespace, "-o", `go-template={{index .data "encryption.yaml" | base64decode}}`)
	_, key, _ := strings.Cut(encryption.EncryptedBy(stored.Kvs[0].Value), `"`)
	if key = strings.TrimSuffix(key, `"`); key == "" || !strings.Contains(keys, "name: "+key+"\n") {
		t.Errorf("the object is sealed by %q, which is not in the Secret", encryption.EncryptedBy(stored.Kvs[0].Value))
	}
}
