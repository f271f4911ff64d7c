// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	events "k8s.io/client-go/tools/record"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// conditionsFrom parses "Ready=False/PushRejected/message ...".
func conditionsFrom(text string) (conditions []metav1.Condition) {
	for field := range strings.FieldsSeq(text) {
		kind, rest, _ := strings.Cut(field, "=")
		parts := append(strings.SplitN(rest, "/", 3), "", "")
		conditions = append(conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(parts[0]), Reason: parts[1], Message: parts[2],
		})
	}
	return conditions
}

func TestEventsOfConditions(t *testing.T) {
	const ready, reading = "Ready=True/Succeeded/fine", "Ready=False/Progressing"
	for name, test := range map[string]struct {
		// states are successive sets of conditions; the first exists at the start.
		states []string
		want   []string
	}{
		"no problem": {[]string{"", reading, ready, reading, ready}, nil},
		"refused and recovered": {
			[]string{ready, "Ready=False/PushRejected/frozen", ready},
			[]string{"Warning PushRejected frozen", "Normal Recovered No longer PushRejected: fine"},
		},
		"recovers by reading": {
			[]string{ready, "Ready=False/AuthenticationFailed/no", reading, ready},
			[]string{"Warning AuthenticationFailed no", "Normal Recovered No longer AuthenticationFailed: fine"},
		},
		"fails as before": {
			[]string{ready, "Ready=False/PushRejected/a", reading, "Ready=False/PushRejected/b"},
			[]string{"Warning PushRejected a"},
		},
		"fails in another way": {
			[]string{ready, "Ready=False/PushRejected/a", "Ready=False/RepositoryUnreachable/b"},
			[]string{"Warning PushRejected a", "Warning RepositoryUnreachable b"},
		},
		"reported by an earlier process": {
			[]string{"Ready=False/PushRejected/a", reading, "Ready=False/PushRejected/a", ready}, []string{
				"Normal Recovered No longer PushRejected: fine",
			}},
		"suspended meanwhile": {
			[]string{ready, "Ready=False/PushRejected/a", "Ready=False/Suspended", ready},
			[]string{"Warning PushRejected a", "Normal Recovered No longer PushRejected: fine"},
		},
		"access denied": {
			[]string{"", "Ready=False/AccessNotGranted/no AccessDenied=True/AccessNotGranted/no"},
			[]string{"Warning AccessNotGranted no"},
		},
		"another owner's folder, written": {
			[]string{ready, ready + " OwnershipConflict=True/OwnedByAnother/theirs", ready + " OwnershipConflict=False/Owned"},
			[]string{"Warning OwnedByAnother theirs", "Normal Recovered No longer OwnedByAnother"}},
		"another owner's folder, not written": {
			[]string{ready, "Ready=False/OwnedByAnother/theirs OwnershipConflict=True/OwnedByAnother/theirs"}, []string{
				"Warning OwnedByAnother theirs",
			}},
		"Secrets left out": {
			[]string{ready, ready + " SecretsEncrypted=False/EncryptionUnavailable/lost", ready + " SecretsEncrypted=False/SecretsOmitted"},
			[]string{"Warning EncryptionUnavailable lost", "Normal Recovered No longer EncryptionUnavailable"}},
		"audit silent": {
			[]string{ready, ready + " AuthorsReported=False/AuditSilent/quiet", ready},
			[]string{"Warning AuditSilent quiet", "Normal Recovered No longer AuditSilent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			a := controllerevents.New(recorder, troublesOf)
			object := &v1alpha1.GitDestination{ObjectMeta: metav1.ObjectMeta{UID: "one"}}
			for i := range test.states[1:] {
				a.Announce(object, conditionsFrom(test.states[i]), conditionsFrom(test.states[i+1]))
			}
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, event)
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestUnappliableFilesAreWarnedOf checks that each push with files that server-side apply cannot restore has one warning, whether a
// comparison or a change has written them.
func TestUnappliableFilesAreWarnedOf(t *testing.T) {
	const has = " characters that kubectl apply --server-side refuses or changes"
	s := newFixture(t, func(s *fixture) {
		s.cluster.put(configMap("fine"), "\u00a0\u2028\ufeff\x1b")
		s.cluster.put(configMap("next-line"), "a\u0085b")
		s.cluster.put(configMap("delete"), "a\x7fb")
	})
	all := func(o outbox.Object) bool { return o.GroupVersionResource() == configMaps }
	s.holds("main", "clusters/a", all)
	if got, want := <-s.warned, "main: NotAppliable: v1/configmaps shop/delete and 1 more have"+has; !strings.HasPrefix(got, want) {
		t.Errorf("warnings = %q, want %q", got, want)
	}
	s.cluster.put(configMap("next-line"), "a b")
	s.holds("main", "clusters/a", all)
	s.cluster.put(configMap("none"), "\ufffe")
	s.holds("main", "clusters/a", all)
	if got, want := <-s.warned, "main: NotAppliable: v1/configmaps shop/none has"+has; !strings.HasPrefix(got, want) {
		t.Errorf("warnings = %q, want %q", got, want)
	}
}

// TestObjectsWithoutFilesAreWarnedOf checks that a comparison and a change report objects that cannot be written as files, and that names
// with control characters can.
func TestObjectsWithoutFilesAreWarnedOf(t *testing.T) {
	s := newFixture(t, func(s *fixture) {
		s.cluster.put(configMap("a\nI1126 b"), "1")
		s.cluster.put(configMap("esc\x1b[31m"), "1")
		s.cluster.put(configMap("a/b"), "1")
		s.cluster.put(configMap("a/c"), "1")
	})
	all := func(o outbox.Object) bool { return o.GroupVersionResource() == configMaps }
	s.holds("main", "clusters/a", all)
	const counted = "main: NotRendered: 2 objects are not written to Git, because they cannot be written as files, among them: "
	if got := <-s.warned; !strings.HasPrefix(got, counted) || !strings.Contains(got, `the name "a/`) {
		t.Errorf("warning = %q, want %q", got, counted)
	}
	s.cluster.put(configMap("a/d"), "1")
	const one = "main: NotRendered: An object is not written to Git, because it cannot be written as a file: path of v1/configmaps shop/a/d: "
	if got := <-s.warned; !strings.HasPrefix(got, one) {
		t.Errorf("warning = %q, want %q", got, one)
	}
	s.cluster.put(configMap("a\x1bb"), "1")
	s.holds("main", "clusters/a", all)
	subject, err := s.run("log", "-1", "--format=%B", "main")
	if err != nil || !strings.HasPrefix(subject, "[CREATE] v1/configmaps shop/a\\u001bb\n") {
		t.Errorf("the commit says %q, %v", subject, err)
	}
}
