// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// rounds is the number of times that source and environment are changed at random.
const rounds = 6

// testDiff checks that diffs predict the changes of the next sync.
func (s *testCluster) testDiff(t *testing.T) {
	c := s.newFixture(t, "differed", shop, workloads("api", "worker"))
	c.mustApply(t, "alice")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	changes := &changes{fixture: c, random: rand.New(rand.NewPCG(seed, 0))}
	for round := range rounds {
		if round > 0 {
			changes.make(t, round)
		}
		before, diff := s.objectsIn(t, c.target), c.diff(t, "diff")
		c.mustSync(t, "alice", all)
		expectDiff(t, diff, before, s.objectsIn(t, c.target))
		if t.Failed() {
			t.Fatalf("round %d: %q", round, changes.made)
		}
	}
	c.testSecretDiff(t)
}

// diff returns the changes that a sync would make.
func (c *fixture) diff(t *testing.T, subresource string) *v1alpha1.SyncPlan {
	t.Helper()
	out, err := c.readDiff(t.Context(), c.dave, subresource)
	if err != nil {
		t.Fatal(err)
	}
	var diff v1alpha1.EnvironmentDiff
	if err := json.Unmarshal([]byte(out), &diff); err != nil {
		t.Fatal(err)
	}
	return &diff.Status
}

func (c *fixture) readDiff(ctx context.Context, by *people.Person, subresource string) (string, error) {
	return by.Kubectl.Run(ctx, "get", "--raw", c.path("environments/alice/"+subresource))
}

// expectDiff expects a diff to contain exactly the changes between two states.
func expectDiff(t *testing.T, diff *v1alpha1.SyncPlan, before, after objects) {
	t.Helper()
	was, is := before.settled(), after.settled()
	for _, change := range diff.Changes {
		name := change.Kind + " " + change.Name
		_, existed := was[name]
		_, exists := is[name]
		switch {
		case change.Refusal != "":
			t.Errorf("%s: %s", name, change.Refusal)
		case (change.ChangeType == v1alpha1.ChangeAdded) != !existed, (change.ChangeType == v1alpha1.ChangeRemoved) != !exists:
			t.Errorf("change type of %s = %s: existed before: %v, exists after: %v", name, change.ChangeType, existed, exists)
		case change.ChangeType == v1alpha1.ChangeChanged:
			expectFields(t, name, change.Fields, was[name], is[name])
			continue // They are equal now, except for unreported changes.
		}
		delete(was, name)
		delete(is, name)
	}
	for _, side := range []map[string]map[string]any{was, is} {
		for _, object := range side {
			unstructured.RemoveNestedField(object, "metadata", "generation")
			unstructured.RemoveNestedField(object, "metadata", "labels", v1alpha1.LabelRevision)
		}
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("changes that are missing in the diff: before -, after +:\n%s", diff)
	}
}

// expectFields expects fields to have the reported values, and removes them from both objects.
func expectFields(t *testing.T, name string, fields []v1alpha1.FieldChange, was, is map[string]any) {
	t.Helper()
	for _, field := range fields {
		path, err := fieldpath.Parse(field.Field)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, side := range []struct {
			of    map[string]any
			value *string
		}{{was, field.Before}, {is, field.After}} {
			value, found := path.Lookup(side.of)
			if field.Hidden {
				continue
			}
			text, _ := json.Marshal(value)
			if found != (side.value != nil) || found && !sameJSON(*side.value, string(text)) {
				t.Errorf("%s %s is reported as %s, but is %s", name, field.Field, deref(side.value), text)
			}
		}
	}
	withoutFields(was, fields)
	withoutFields(is, fields)
}

func deref(text *string) string {
	if text == nil {
		return "absent"
	}
	return *text
}

func sameJSON(a, b string) bool {
	var left, right any
	return json.Unmarshal([]byte(a), &left) == nil && json.Unmarshal([]byte(b), &right) == nil && cmp.Equal(left, right)
}

// withoutFields removes fields from an object, and containers that become empty. All fields are looked up before the first one
// is removed, because the key of a list item may be among them.
func withoutFields(object map[string]any, fields []v1alpha1.FieldChange) {
	var removals []func()
	for _, field := range fields {
		path, err := fieldpath.Parse(field.Field)
		if err != nil {
			continue
		}
		last := path[len(path)-1]
		switch holder, _ := path[:len(path)-1].Lookup(object); holder := holder.(type) {
		case map[string]any:
			removals = append(removals, func() { delete(holder, last.Field) })
		case []any:
			if at := last.Find(holder); at >= 0 {
				removals = append(removals, func() { holder[at] = nil })
			}
		}
	}
	for _, remove := range removals {
		remove()
	}
	withoutEmpty(object)
}

// withoutEmpty returns a value without empty maps and lists, nil if nothing remains.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if value[name] = withoutEmpty(inner); value[name] == nil {
				delete(value, name)
			}
		}
		if len(value) == 0 {
			return nil
		}
	case []any:
		kept := make([]any, 0, len(value))
		for _, item := range value {
			if item = withoutEmpty(item); item != nil {
				kept = append(kept, item)
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	return value
}

// testSecretDiff expects values of Secrets to be shown only with permission, and to be absent from the audit log.
func (c *fixture) testSecretDiff(t *testing.T) {
	t.Helper()
	value := base64.StdEncoding.EncodeToString([]byte("very-secret"))
	c.applyToSource(t, "{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {TOKEN: very-secret}}")
	c.waitForStatus(t, "alice", "1 Secret changed")
	plain, err := c.readDiff(t.Context(), c.dave, "diff")
	if err != nil || strings.Contains(plain, value) || strings.Contains(plain, "very-secret") || !strings.Contains(plain, `"/data/TOKEN"`) {
		t.Errorf("diff = %s: %v", plain, err)
	}
	if out, err := c.readDiff(t.Context(), c.dave, "secretdiff"); err == nil || !strings.Contains(err.Error(), "(Forbidden)") {
		t.Errorf("secretdiff without permission = %s: %v", out, err)
	}
	c.Apply(t, people.In(c.team, "slipstream-admin", c.dave.Name))
	var shown string
	mirrortest.Eventually(t, "the permission is effective", func(ctx context.Context) (err error) {
		shown, err = c.readDiff(ctx, c.dave, "secretdiff")
		return err
	})
	if !strings.Contains(shown, value) {
		t.Errorf("secretdiff = %s", shown)
	}
	events := audited(t, c.ownLog, func(event *auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Subresource == "secretdiff" && event.ObjectRef.Namespace == c.team &&
			event.ResponseStatus.Code == 200
	})
	if len(events) == 0 || events[0].User.Username != c.dave.Name || events[0].Level != auditv1.LevelMetadata {
		t.Errorf("audit events = %+v", events)
	}
	log, err := os.ReadFile(c.ownLog)
	if err != nil || strings.Contains(string(log), value) {
		t.Errorf("the audit log contains the value of a Secret: %v", err)
	}
}
