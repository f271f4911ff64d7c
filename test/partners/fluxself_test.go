// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/testkit/fluxtest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// following is how long users change a cluster that follows its own mirror.
var following = flag.Duration("following", time.Minute, "how long users change a cluster that follows its own mirror")

// onlyMissing has Flux create what is missing, and leave what exists as it is. Otherwise Flux undoes each change that a user makes while it
// applies an earlier commit.
const onlyMissing = "  commonMetadata:\n    annotations:\n      kustomize.toolkit.fluxcd.io/ssa: IfNotPresent\n"

// followsItself has the mirrored cluster follow its own mirror while users change it, and expects a commit for each of their changes and no
// other one.
func (o *origin) followsItself(t *testing.T, flux *fluxtest.Flux) {
	flux.Apply(t, strings.Replace(o.bootstrap(t, o.Cluster, "--interval=2s"), "  decryption:\n", onlyMissing+"  decryption:\n", 1))
	first := o.tip(t)
	flux.Applied(t, kustomization, first)
	o.still(t, first, flux)

	var users []*user
	for i, name := range []string{"jane", "bob", "carol"} {
		namespace := fmt.Sprintf("team-%d", i+2)
		o.Apply(t, people.In(namespace, "admin", name))
		users = append(users, &user{Person: people.New(t, o.Cluster, name), origin: o, namespace: namespace})
	}
	before := o.tip(t)
	changes := 0
	for deadline := time.Now().Add(*following); time.Now().Before(deadline); {
		for _, each := range users {
			each.change(t)
			changes++
		}
		// No two changes of an object are in one commit.
		for _, each := range users {
			each.committed(t)
		}
	}
	after := o.tip(t)
	o.onlyBy(t, before, after, changes)
	flux.Applied(t, kustomization, after)
	o.still(t, after, flux)
	t.Run("Deletion", func(t *testing.T) {
		users[0].Delete(t, "team-2", "configmap/settings-20")
		deleted := o.tip(t)
		flux.Applied(t, kustomization, deleted)
		o.onlyBy(t, after, deleted, 1)
		o.still(t, deleted, flux)
	})
}

// onlyBy expects as many commits between two as users have made changes, and none by Flux.
func (o *origin) onlyBy(t *testing.T, before, after string, changes int) {
	t.Helper()
	out, err := o.Git(t.Context(), "log", "--format=%an %s", before+".."+after)
	if err != nil {
		t.Fatal(err)
	}
	commits := strings.Count(out, "\n")
	t.Logf("%d changes, %d commits", changes, commits)
	if changes == 0 || commits != changes || strings.Contains(out, "kustomize-controller") {
		t.Errorf("%d changes of users made %d commits:\n%s", changes, commits, out)
	}
}

// still expects no commit after the given one, also when Flux applies everything again.
func (o *origin) still(t *testing.T, commit string, flux *fluxtest.Flux) {
	t.Helper()
	for range 2 {
		flux.ApplyAgain(t, kustomization)
		if tip := o.tip(t); tip != commit {
			out, err := o.Git(t.Context(), "log", "--format=%an %s", commit+".."+tip)
			t.Errorf("unexpected commits (%v):\n%s", err, out)
		}
	}
}

// user changes objects of a namespace.
type user struct {
	*people.Person
	origin    *origin
	namespace string
	changes   int
}

// change changes a Secret, a Deployment or a ConfigMap that exists, or creates a ConfigMap.
func (u *user) change(t *testing.T) {
	t.Helper()
	number := u.changes
	value := strconv.Itoa(number)
	switch number % 4 {
	case 0:
		u.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: new-%d, namespace: %s}, data: {color: %q}}", number, u.namespace, value))
	case 1:
		u.Patch(t, u.namespace, fmt.Sprint("secret/credentials-", number%8+2), fmt.Sprintf(`{"stringData":{"password":%q}}`, value))
	case 2:
		u.Patch(t, u.namespace, "deployment/web", fmt.Sprintf(`{"metadata":{"annotations":{"example.com/build":%q}}}`, value))
	default:
		u.Patch(t, u.namespace, fmt.Sprint("configmap/settings-", number%20), fmt.Sprintf(`{"data":{"color":%q}}`, value))
	}
	u.changes++
}

// committed waits until the branch has as many commits of the user as the user has made changes.
func (u *user) committed(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, u.Name+"'s change is in Git", func(ctx context.Context) error {
		out, err := u.origin.Git(ctx, "log", "--format=%h", "--author=^"+u.Name+" ", "main", "--", u.origin.Folder+"/*/"+u.namespace+"/*")
		if err == nil && strings.Count(out, "\n") < u.changes {
			err = fmt.Errorf("%d commits, %d changes", strings.Count(out, "\n"), u.changes)
		}
		return err
	})
}
