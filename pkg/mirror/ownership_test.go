// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

const markerFile = "clusters/a/" + markerPath

// marker reads the marker of the destination's folder from the remote.
func (s *fixture) marker() (owner v1alpha1.OwnerMarker, content string) {
	s.t.Helper()
	content = s.mustRun("show", "main:"+markerFile)
	owner, err := parseMarker([]byte(content))
	if err != nil {
		s.t.Fatalf("%v:\n%s", err, content)
	}
	return owner, content
}

// conflict returns the condition OwnershipConflict of a destination.
func (s *fixture) conflict(name string) metav1.Condition {
	d := s.destination(name)
	for _, condition := range destinationConditions(d, s.publisher.failure(d), "", s.router.authors.reports(time.Now()), nil) {
		if condition.Type == v1alpha1.ConditionOwnershipConflict {
			return condition
		}
	}
	return metav1.Condition{Status: metav1.ConditionUnknown}
}

func (s *fixture) waitConflict(name string, status metav1.ConditionStatus, message string) {
	s.t.Helper()
	testkit.Eventually(s.t, fmt.Sprintf("OwnershipConflict=%s", status), func() error {
		if c := s.conflict(name); c.Status != status || !strings.Contains(c.Message, message) {
			return fmt.Errorf("%s: %s: %s", c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

// claimedBy puts the marker of another owner into the folder before the mirror starts.
func claimedBy(content string, change ...func(*v1alpha1.GitDestination)) func(*fixture) {
	return func(s *fixture) {
		if err := os.MkdirAll(filepath.Join(s.git.root, "shop.git"), 0o750); err != nil {
			s.t.Fatal(err)
		}
		s.mustRun("init", "--quiet", "--bare", "--initial-branch=main", ".")
		s.mustRun("config", "http.receivepack", "true")
		clone := s.t.TempDir()
		s.mustRun("clone", "--quiet", ".", clone)
		if err := writeFile(clone, markerFile, content); err != nil {
			s.t.Fatal(err)
		}
		s.mustRun("-C", clone, "add", "--all")
		s.mustRun("-C", clone, "commit", "--quiet", "--message=mark")
		s.mustRun("-C", clone, "push", "--quiet", "origin", "HEAD:main")
		for _, each := range change {
			each(s.in.destinations[0])
		}
	}
}

func exclusive(d *v1alpha1.GitDestination) { d.Spec.ExclusiveMode = true }

const foreignMarker = "clusterUID: elsewhere\nnamespace: theirs\nname: other\ninstance: x\ntime: \"2026-01-01T00:00:00Z\"\n"

func TestFirstCommitMarksTheFolder(t *testing.T) {
	started := time.Now().Truncate(time.Second) // as markers do
	s := newFixture(t)
	s.idle()
	s.waitConflict("main", metav1.ConditionFalse, "no marker")
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	owner, content := s.marker()
	if owner.ClusterUID != "cluster" || owner.Namespace != "shop" || owner.Name != "main" || owner.Instance != "system/one" ||
		owner.Time.Time.Before(started) || owner.Time.After(time.Now()) {
		t.Errorf("marker = %+v", owner)
	}
	if n := s.mustRun("rev-list", "--count", "main"); n != "1" {
		t.Errorf("%s commits for one change", n)
	}
	s.waitConflict("main", metav1.ConditionFalse, "")
	testkit.Eventually(t, "the owner in the record", func() error {
		if got := s.record("main").Owner; !equality.Semantic.DeepEqual(got, &owner) {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	// kubectl apply of the whole folder must not apply the marker.
	var object map[string]any
	if err := yaml.Unmarshal([]byte(content), &object); err != nil {
		t.Fatal(err)
	}
	if list := (&unstructured.Unstructured{Object: object}); list.GetKind() != "List" || !list.IsList() || len(object["items"].([]any)) != 0 {
		t.Errorf("marker is not an empty list:\n%s", content)
	}
	// It is not changed by a sync request or a restart.
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.stop()
	s.start()
	s.stays("main", func() { s.ask("again", true); s.answered("again") })
	if _, again := s.marker(); again != content {
		t.Errorf("marker has changed from\n%s\nto\n%s", content, again)
	}
	s.cluster.remove(configMap("a"))
	s.cluster.remove(configMap("b"))
	s.mirrored()
	s.marker()
}

func TestMarkerOfAnotherOwner(t *testing.T) {
	for name, tt := range map[string]struct{ content, message string }{
		"another cluster": {foreignMarker, "names GitDestination theirs/other of the cluster elsewhere"},
		"no marker":       {"just text", "cannot be understood"},
		"a part":          {"clusterUID: x\n", "cannot be understood: it has no namespace"},
		"control signs":   {"clusterUID: \"a\\x1bb\"\nnamespace: a\nname: b\n", "its values are no names"},
		"too large":       {foreignMarker + "#" + strings.Repeat("x", 20_000), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("exclusive", func(t *testing.T) {
				s := newFixture(t, claimedBy(tt.content, exclusive))
				s.cluster.put(configMap("a"), "1")
				s.waitConflict("main", metav1.ConditionTrue, tt.message)
				if ready := s.waitReady("main", v1alpha1.ReasonOwnedByAnother); !strings.Contains(ready.Message, "Delete the marker") {
					t.Errorf("message of Ready = %s", ready.Message)
				}
				if n := s.mustRun("rev-list", "--count", "main"); n != "1" {
					t.Errorf("%s commits", n)
				}
				// Deleting the marker hands the folder over.
				other := s.otherWriter()
				if err := other.edit("hand over", func() error { return other.git("rm", "--quiet", markerFile) }); err != nil {
					t.Fatal(err)
				}
				s.ask("now", false)
				s.mirrored()
				if owner, _ := s.marker(); owner.Name != "main" {
					t.Errorf("marker = %+v", owner)
				}
				s.waitConflict("main", metav1.ConditionFalse, "")
				s.waitReady("main", v1alpha1.ReasonSucceeded)
			})
			t.Run("not exclusive", func(t *testing.T) {
				s := newFixture(t, claimedBy(tt.content))
				s.cluster.put(configMap("a"), "1")
				s.mirrored()
				s.waitConflict("main", metav1.ConditionTrue, tt.message)
				s.waitReady("main", v1alpha1.ReasonSucceeded)
				if got := s.mustRun("show", "main:"+markerFile); got != strings.TrimSpace(tt.content) {
					t.Errorf("marker of the other owner has changed to\n%s", got)
				}
			})
		})
	}
}

// TestMarkerOfADeletedDestination checks that the marker of a deleted destination, or of one with another folder, is replaced by another
// destination of the cluster.
func TestMarkerOfADeletedDestination(t *testing.T) {
	deleted := strings.NewReplacer("elsewhere", "cluster", "instance: x", "instance: system/one").Replace(foreignMarker)
	s := newFixture(t, claimedBy(deleted, exclusive))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	if owner, _ := s.marker(); owner.Name != "main" {
		t.Errorf("marker = %+v", owner)
	}
}

// aliased has the second destination use another URL of the first one's repository.
func aliased(s *fixture) {
	alias := s.in.repositories[0].DeepCopy()
	alias.Name = "alias"
	alias.Spec.RepoURL = strings.Replace(alias.Spec.RepoURL, "127.0.0.1", "localhost", 1)
	s.in.repositories = append(s.in.repositories, alias)
	s.in.destinations[1].Spec.RepoRef.Name = "alias"
}

// TestFolderAroundAnotherUnderTwoNames checks that a destination does not change the files of a nested folder of another owner, and reports
// it.
func TestFolderAroundAnotherUnderTwoNames(t *testing.T) {
	s := newFixture(t, onBranch("outer", "main", "clusters"), aliased, pollOften)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(configMap("b"), "1")
	both := func() {
		t.Helper()
		s.mirrored()
		s.holds("main", "clusters", inShop)
	}
	both()
	const conflict = "clusters/a/.configbutler/owner.yaml, within the folder, names GitDestination shop/main, " +
		"whose spec names that folder"
	s.waitConflict("outer", metav1.ConditionTrue, conflict)
	s.waitConflict("main", metav1.ConditionFalse, "")
	s.cluster.remove(configMap("a"))
	s.cluster.put(configMap("c"), "1")
	both()

	strict := s.in.destinations[1].DeepCopy()
	strict.Spec.ExclusiveMode = true
	s.replan(func(in *inputs) { in.destinations[1] = strict })
	s.waitReady("outer", v1alpha1.ReasonOwnedByAnother)
	s.cluster.put(configMap("d"), "1")
	s.mirrored()
	s.replan(func(in *inputs) { in.destinations, in.rules = in.destinations[1:], in.rules[1:] })
	s.holds("main", "clusters", inShop)
	s.waitConflict("outer", metav1.ConditionFalse, "")
}

// TestRepositoryUnderTwoNames checks that the marker reveals that two URLs lead to one repository.
func TestRepositoryUnderTwoNames(t *testing.T) {
	s := newFixture(t, onBranch("other", "main", "clusters/a"), aliased, func(s *fixture) { s.in.destinations[1].Spec.Suspend = true })
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	resumed := s.in.destinations[1].DeepCopy()
	resumed.Spec.Suspend = false
	s.replan(func(in *inputs) { in.destinations[1] = resumed })
	s.waitConflict("other", metav1.ConditionTrue, "GitDestination shop/main, whose spec names the same branch and folder")
	if ready := s.waitReady("other", v1alpha1.ReasonFolderOverlaps); ready.Status != metav1.ConditionFalse {
		t.Errorf("Ready = %+v", ready)
	}
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	// The first is deleted: the second may write the folder.
	s.replan(func(in *inputs) { in.destinations, in.rules = in.destinations[1:], in.rules[1:] })
	testkit.Eventually(t, "the folder changes hands", func() error {
		s.cluster.put(configMap("c"), fmt.Sprint(time.Now().UnixNano()))
		s.ask("now", false)
		if owner, _ := s.marker(); owner.Name != "other" {
			return errors.New("folder is not written yet")
		}
		return nil
	})
}

func TestMarkerIsReadAsItWasWritten(t *testing.T) {
	owner := v1alpha1.OwnerMarker{
		ClusterUID: "uid: #1", Namespace: "null", Name: "1.0", Instance: "host_00", Time: metav1.NewTime(time.Unix(1_800_000_000, 0).UTC()),
	}
	content, err := renderMarker(owner)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseMarker(content)
	if err != nil || got.ClusterUID != owner.ClusterUID || got.Namespace != owner.Namespace || got.Name != owner.Name ||
		!got.Time.Equal(&owner.Time) {
		t.Errorf("error %v, marker = %+v from\n%s", err, got, content)
	}
}

func FuzzMarker(f *testing.F) {
	for _, seed := range []string{foreignMarker, markerHead, "", "a: &a [*a]", "{clusterUID: [1]}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		owner, err := parseMarker(content)
		if err == nil && (owner.ClusterUID == "" || len(owner.Name) > longestMark) {
			t.Errorf("%+v", owner)
		}
	})
}

// TestFolderWithTheNameOfAFile checks that a folder does not replace a file of others with its name.
func TestFolderWithTheNameOfAFile(t *testing.T) {
	for _, folder := range []string{"CODEOWNERS", "CODEOWNERS/a", "docs/link", "docs/link/b"} {
		t.Run(folder, func(t *testing.T) {
			s := newFixture(t, onBranch("other", "main", "b"), func(s *fixture) {
				claimedBy("")(s)
				clone := t.TempDir()
				s.mustRun("clone", "--quiet", ".", clone)
				if err := errors.Join(writeFile(clone, "CODEOWNERS", "* @ops\n"), writeFile(clone, "docs/a", "a\n"),
					os.Symlink("a", clone+"/docs/link")); err != nil {
					t.Fatal(err)
				}
				s.mustRun("-C", clone, "add", "--all")
				s.mustRun("-C", clone, "commit", "--quiet", "--message=theirs")
				s.mustRun("-C", clone, "push", "--quiet", "origin", "HEAD:main")
				s.in.destinations[0].Spec.BaseFolder = folder
			})
			s.cluster.put(configMap("a"), "1")
			ready := s.waitReady("main", v1alpha1.ReasonFolderInvalid)
			name := strings.TrimSuffix(strings.TrimSuffix(folder, "/a"), "/b")
			if want := fmt.Sprintf("spec.baseFolder: %q is not a folder on the branch", name); !strings.Contains(ready.Message, want) {
				t.Errorf("message = %q, want %q", ready.Message, want)
			}
			s.holds("main", "b", inShop)
			if got := s.mustRun("ls-tree", "-r", "--format=%(objectmode) %(path)", "main", "--", "CODEOWNERS",
				"docs"); got != "100644 CODEOWNERS\n100644 docs/a\n120000 docs/link" {
				t.Errorf("files of others have changed:\n%s", got)
			}
		})
	}
}
