// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// TestBackupAndRestore takes a backup of a running server, lets the world go on, and restores it into the running
// server, twice.
func TestBackupAndRestore(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program, err := programs.Product(t.Context(), root, "cmd/slipstream")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, devcluster.Options{ServerProgram: program})
	o := &operator{stage: s, program: program, file: filepath.Join(t.TempDir(), "backup.tar")}
	m := s.newMirror(t, "restored")
	m.Watch(t, "config", "configmaps")
	client := mirrortest.Client(t, s.Admin())
	for n := range 20 {
		write(t, client, m.Namespace, fmt.Sprintf("before-%d", n), "1")
	}
	m.equal(t, client)
	m.Settled(t)
	slipstream := o.clientset(t)
	informer := followRepositories(t, slipstream)

	o.run(t, 0, "backup", "--output", o.file)
	uids := o.uids(t)
	if again := o.run(t, 1, "backup", "--output", o.file); !strings.Contains(again, "exists") {
		t.Errorf("a second backup under the same name: %s", again)
	}
	s.Apply(t, "apiVersion: configbutler.ai/v1alpha1\nkind: GitRepoConfig\nmetadata: {name: later, namespace: restored}\n"+
		"spec: {repoUrl: "+s.Env(devcluster.EnvGitURL)+"/later.git, allowedBranches: [main]}\n")
	informer.eventuallyHolds(t, "restored/later", "restored/main")
	write(t, client, m.Namespace, "after", "1")
	m.equal(t, client)

	for range 2 {
		before := o.resourceVersion(t, slipstream)
		if said := o.run(t, 0, "restore", o.file); !strings.Contains(said, "before-restore-") || !strings.Contains(said, "the server ends now") {
			t.Errorf("restore said %q", said)
		}
		o.ended(t)
		if err := s.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		informer.eventuallyHolds(t, "restored/main")
		o.checkRevisions(t, slipstream, before)
		if got := o.uids(t); got != uids {
			t.Errorf("the objects are\n%s\nand were\n%s", got, uids)
		}
		write(t, client, m.Namespace, "after-the-restore", strconv.FormatInt(before, 10))
		m.equal(t, client)
		m.Settled(t)
	}
	if empty := m.withoutChange(t); len(empty) > 0 {
		t.Errorf("commits without a change: %v", empty)
	}
	m.Intact(t)
}

// operator runs the program's commands beside the server.
type operator struct {
	*stage
	program, file string
}

// run runs a command, which must end with an exit code, and returns what it said.
func (o *operator) run(t *testing.T, code int, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), o.program, append(arguments, "--data-dir="+o.Env(devcluster.EnvDataDir))...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || command.ProcessState.ExitCode() != code {
		t.Fatalf("%v ended with %v, want exit code %d: %s", arguments, err, code, out)
	}
	return string(out)
}

// ended waits until the server has gone by itself.
func (o *operator) ended(t *testing.T) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(o.Env(devcluster.EnvServerPIDs)))
	if err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the server ends", func(context.Context) error {
		if syscall.Kill(pid, 0) == nil && !isZombie(pid) {
			return fmt.Errorf("process %d is there", pid)
		}
		return nil
	})
}

// isZombie tells whether a process has ended and waits for somebody to ask.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
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

// uids are the names and uids of what users wrote.
func (o *operator) uids(t *testing.T) string {
	t.Helper()
	return o.Run(t, "get", "gitrepoconfigs,gitdestinations,watchrules", "-A", "-o",
		`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.creationTimestamp}{"\n"}{end}`)
}

// resourceVersion is that of a list.
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

// checkRevisions asks with a resource version from before the restore: a watch is told to begin anew, and a list that
// must be at least that new is answered.
func (o *operator) checkRevisions(t *testing.T, client versioned.Interface, before int64) {
	t.Helper()
	if now := o.resourceVersion(t, client); now < before+1_000_000_000 {
		t.Errorf("resource version %d after the restore, %d before", now, before)
	}
	old := metav1.ListOptions{ResourceVersion: strconv.FormatInt(before, 10)}
	if _, err := client.ConfigbutlerV1alpha1().GitRepoConfigs("").List(t.Context(), old); err != nil {
		t.Errorf("a list from %d: %v", before, err)
	}
	watch, err := client.ConfigbutlerV1alpha1().GitRepoConfigs("").Watch(t.Context(), old)
	if err == nil {
		event := <-watch.ResultChan()
		watch.Stop()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from %d got %v, want 410", before, err)
	}
}

// repositories is an informer that is open all the time.
type repositories struct{ cache.SharedIndexInformer }

func followRepositories(t *testing.T, client versioned.Interface) repositories {
	t.Helper()
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := repositories{factory.Configbutler().V1alpha1().GitRepoConfigs().Informer()}
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer does not fill")
	}
	return informer
}

func (r repositories) eventuallyHolds(t *testing.T, want ...string) {
	t.Helper()
	mirrortest.Eventually(t, "the informer follows", func(context.Context) error {
		got := r.GetStore().ListKeys()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it holds %v, want %v", got, want)
		}
		return nil
	})
}
