// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// TestBackupAndRestore takes a backup of a running server, makes more changes, and restores the backup into the running server,
// twice.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	program := clustertest.Program(t, "cmd/slipstream")
	s := newTestCluster(t, devcluster.Options{ServerProgram: program})
	o := &operator{testCluster: s, program: program, file: filepath.Join(t.TempDir(), "backup.tar")}
	m := s.newMirror(t, "restored")
	m.Watch(t, "config", "configmaps")
	client := mirrortest.Client(t, s.Admin())
	for n := range 20 {
		write(t, client, m.Namespace, fmt.Sprintf("before-%d", n), "1")
	}
	m.Equal(t, client)
	m.Settled(t)
	slipstream := o.clientset(t)
	informer := followRepositories(t, slipstream)

	o.run(t, 0, "backup", "--output", o.file)
	uids := o.uids(t)
	if again := o.run(t, 1, "backup", "--output", o.file); !strings.Contains(again, "exists") {
		t.Errorf("second backup with the same name: %s", again)
	}
	s.Apply(t, "apiVersion: configbutler.ai/v1alpha1\nkind: GitRepoConfig\nmetadata: {name: later, namespace: restored}\n"+
		"spec: {repoUrl: "+s.Env(devcluster.EnvGitURL)+"/later.git, allowedBranches: [main]}\n")
	informer.waitForKeys(t, "restored/later", "restored/main")
	write(t, client, m.Namespace, "after", "1")
	m.Equal(t, client)

	for range 2 {
		before := o.resourceVersion(t, slipstream)
		if out := o.run(t, 0, "restore", o.file); !strings.Contains(out, "before-restore-") || !strings.Contains(out, "the server ends now") {
			t.Errorf("restore printed %q", out)
		}
		if err := s.WaitForServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		informer.waitForKeys(t, "restored/main")
		o.checkRevisions(t, slipstream, before)
		if got := o.uids(t); got != uids {
			t.Errorf("objects after the restore\n%s\nwant\n%s", got, uids)
		}
		write(t, client, m.Namespace, "after-the-restore", strconv.FormatInt(before, 10))
		m.Equal(t, client)
		m.Settled(t)
	}
	if empty := m.withoutChange(t); len(empty) > 0 {
		t.Errorf("commits without a change: %v", empty)
	}
	m.Intact(t)
}

// operator runs commands of the program while the server runs.
type operator struct {
	*testCluster
	program, file string
}

// run runs a command, which must exit with the given code, and returns its output.
func (o *operator) run(t *testing.T, code int, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), o.program, append(arguments, "--data-dir="+o.Env(devcluster.EnvDataDir))...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || command.ProcessState.ExitCode() != code {
		t.Fatalf("%v exited with %v, want exit code %d: %s", arguments, err, code, out)
	}
	return string(out)
}

func (o *operator) clientset(t *testing.T) versioned.Interface {
	t.Helper()
	config, err := o.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// uids returns the names and uids of the objects that users created.
func (o *operator) uids(t *testing.T) string {
	t.Helper()
	return o.Run(t, "get", "gitrepoconfigs,gitdestinations,watchrules", "-A", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.creationTimestamp}{"\n"}{end}`)
}

// resourceVersion returns the resourceVersion of a list.
func (o *operator) resourceVersion(t *testing.T, client versioned.Interface) int64 {
	t.Helper()
	list, err := client.ConfigbutlerV1alpha1().GitRepoConfigs("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// checkRevisions uses a resourceVersion from before the restore: a watch from it must expire, and a list that is at least that
// new must succeed.
func (o *operator) checkRevisions(t *testing.T, client versioned.Interface, before int64) {
	t.Helper()
	if now := o.resourceVersion(t, client); now < before+1_000_000_000 {
		t.Errorf("resource version %d after the restore, %d before", now, before)
	}
	old := metav1.ListOptions{ResourceVersion: strconv.FormatInt(before, 10)}
	if _, err := client.ConfigbutlerV1alpha1().GitRepoConfigs("").List(t.Context(), old); err != nil {
		t.Errorf("list from %d: %v", before, err)
	}
	watch, err := client.ConfigbutlerV1alpha1().GitRepoConfigs("").Watch(t.Context(), old)
	if err == nil {
		event := <-watch.ResultChan()
		watch.Stop()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("watch from %d returned %v, want 410", before, err)
	}
}

// repositories is an informer that runs during the whole test.
type repositories struct{ cache.SharedIndexInformer }

func followRepositories(t *testing.T, client versioned.Interface) repositories {
	t.Helper()
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := repositories{factory.Configbutler().V1alpha1().GitRepoConfigs().Informer()}
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("informer did not sync")
	}
	return informer
}

func (r repositories) waitForKeys(t *testing.T, want ...string) {
	t.Helper()
	mirrortest.Eventually(t, "the informer is up to date", func(context.Context) error {
		got := r.GetStore().ListKeys()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("informer has %v, want %v", got, want)
		}
		return nil
	})
}
