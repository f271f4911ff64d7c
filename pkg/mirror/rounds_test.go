// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

// withPlainSecrets has the rule of world select Secrets, too, without encryption.
func withPlainSecrets(s *fixture) {
	withSecrets(s)
	s.in.destinations[0].Spec.Secrets = v1alpha1.SecretsAsIs
}

func inShopWithSecrets(o outbox.Object) bool {
	return o.Namespace == "shop" && (o.Resource == "configmaps" || o.Resource == "secrets")
}

// mirroredWithSecrets waits until Git has what withPlainSecrets selects.
func (s *fixture) mirroredWithSecrets() {
	s.t.Helper()
	s.holds("main", "clusters/a", inShopWithSecrets)
	s.idle()
}

func TestSeedOfSeveralTypesIsOneCommit(t *testing.T) {
	s := newFixture(t, withPlainSecrets, func(s *fixture) {
		for _, o := range []outbox.Object{configMap("a"), configMap("b"), secret("a"), secret("b"), secret("c")} {
			s.cluster.put(o, "1")
		}
	})
	s.mirroredWithSecrets()
	if got, want := s.commits("main"), []string{"[SEED] 5 objects: 5 created"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	testkit.EventuallyTrue(t, "the comparison is recorded", func() bool { return s.record("main").LastSeedTime != nil })
}

// TestSeedOfSeveralTypesHasACommitForEachAuthor checks that comparisons of several types make one commit for each author.
func TestSeedOfSeveralTypesHasACommitForEachAuthor(t *testing.T) {
	r := newReports()
	s := newFixture(t, withPlainSecrets, func(s *fixture) { s.facts, s.hash = r, contentHash })
	s.cluster.put(configMap("first"), "1")
	s.mirroredWithSecrets()
	s.stop()
	before := s.mustRun("rev-parse", "main")
	r.followed = make(chan struct{})
	var facts []attribution.Fact
	put := func(user string, o outbox.Object) {
		uid, begun := types.UID(o.Resource+"-"+o.Name), time.Now()
		s.cluster.put(o, "1", func(object *unstructured.Unstructured) {
			object.SetUID(uid)
			object.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: new(metav1.Now())},
			})
		})
		facts = append(facts, attribution.Fact{
			ID: string(uid), Signal: attribution.Audit, Operation: v1alpha1.OperationCreate,
			Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, UID: uid,
			After: s.cluster.get(o).GetResourceVersion(), Begun: begun, Ended: time.Now(), Actor: attribution.Actor{Username: user},
		})
	}
	put("ann", configMap("ann"))
	put("bob", configMap("bob"))
	put("ann", secret("ann"))
	put("bob", secret("bob"))
	s.cluster.beforeList(func() { r.publish(facts...) })
	s.start()
	s.mirroredWithSecrets()
	want := "ann [SEED] 2 objects: 2 created\nbob [SEED] 2 objects: 2 created"
	if got := s.mustRun("log", "--reverse", "--format=%an %s", before+"..main"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestSeedOfSeveralTypesIsPushedInParts checks that comparisons of several types hold at most one part in memory.
func TestSeedOfSeveralTypesIsPushedInParts(t *testing.T) {
	large := strings.Repeat("x", comparePartBytes/4)
	s := newFixture(t, withPlainSecrets, func(s *fixture) {
		for i := range 3 {
			s.cluster.put(configMap(fmt.Sprint(i)), large)
			s.cluster.put(secret(fmt.Sprint(i)), large)
		}
	})
	s.mirroredWithSecrets()
	want := []string{"[SEED] 4 objects: 4 created", "[SEED] 2 objects: 2 created"}
	if got := s.commits("main"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDeathInASeedOfSeveralTypes kills the process while it pushes comparisons of several types. The next one must write what is missing,
// and nothing twice.
func TestDeathInASeedOfSeveralTypes(t *testing.T) {
	for _, moment := range []string{"before put pushes", "after put pushes", "before push", "after push"} {
		t.Run(moment, func(t *testing.T) {
			s := newFixture(t, withPlainSecrets, func(s *fixture) {
				s.cluster.put(configMap("a"), "1")
				s.cluster.put(secret("a"), "1")
				s.cluster.beforeList(func() { s.process.killAt(moment, 1) })
			})
			<-s.process.died
			s.stop()
			s.cluster.put(secret("while dead"), "1")
			s.start()
			s.mirroredWithSecrets()
			for _, o := range []outbox.Object{configMap("a"), secret("a"), secret("while dead")} {
				s.eachChangeOnce(o)
			}
		})
	}
}

// TestSeedWithoutATypeThatCannotBeListed checks that a type that cannot be listed does not block the others, and keeps its files.
func TestSeedWithoutATypeThatCannotBeListed(t *testing.T) {
	s := newFixture(t, withPlainSecrets)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(secret("a"), "1")
	s.mirroredWithSecrets()
	s.stop()
	s.cluster.put(configMap("b"), "1")
	s.cluster.put(secret("b"), "1")
	s.cluster.remove(secret("a"))
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	s.cluster.setRefused(secrets, errors.New("forbidden"))
	s.start()
	testkit.Eventually(t, "what can be listed", func() error {
		files, err := s.files("main")
		if err == nil && files["clusters/a/core/v1/configmaps/shop/b.yaml"] == "" {
			err = errors.New("ConfigMap has no file")
		}
		return err
	})
	if files, err := s.files("main"); err != nil || files["clusters/a/core/v1/secrets/shop/a.yaml"] == "" {
		t.Errorf("file of the Secret was removed: %v, %v", files, err)
	}
	s.cluster.setRefused(secrets, nil)
	s.mirroredWithSecrets()
}

// TestSeedsWaitForWatchesThatStart checks that the first comparisons wait for watches that are starting.
func TestSeedsWaitForWatchesThatStart(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	only := func(t schema.GroupVersionResource) bool { return t == configMaps }
	s := newSeeds()
	s.selectTypes(map[schema.GroupVersionResource]string{configMaps: "a", secrets: "a"})
	if next, ok := s.take(only, always); ok {
		t.Fatalf("%s is compared alone", next.resource)
	}
	if due, _ := s.next(); due.IsZero() {
		t.Error("no retry is scheduled")
	}
	if next, ok := s.take(only, never); !ok || next.resource != configMaps {
		t.Errorf("next = %+v, %t, although no watch is starting any more", next, ok)
	}
	s.types[secrets].selected = time.Now().Add(-seedPatience)
	s.invalidate(configMaps)
	if next, ok := s.take(only, always); !ok || next.resource != configMaps {
		t.Errorf("next = %+v, %t, after the maximum wait for the other type", next, ok)
	}
}

// TestSeedsHaveEvents checks that each push of a comparison has Events, and that a comparison without differences has none, also after a
// restart.
func TestSeedsHaveEvents(t *testing.T) {
	s := newFixture(t, func(s *fixture) {
		s.cluster.put(configMap("a"), "1")
		s.cluster.put(configMap("b"), "1")
	})
	s.mirrored()
	s.idle()
	first := s.mustRun("rev-parse", "main")
	s.stop()
	s.start()
	s.idle()
	s.stop()
	s.cluster.remove(configMap("b"))
	s.start()
	s.mirrored()
	s.idle()
	s.stop()
	s.start()
	s.idle()
	want := []string{
		"main Normal Seeded: A comparison with the cluster has written 2 files to branch main; the last commit is " + first,
		"main Normal OrphansRemoved: A comparison with the cluster has removed 1 file that no object maps to from branch main; " +
			"the last commit is " + s.mustRun("rev-parse", "main"),
	}
	if got := s.events.Lines(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
