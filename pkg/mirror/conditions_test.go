// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

const (
	ready, reconciling, stalled = v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	denied, conflict            = v1alpha1.ConditionAccessDenied, v1alpha1.ConditionOwnershipConflict
	encrypted, reported         = v1alpha1.ConditionSecretsEncrypted, v1alpha1.ConditionAuthorsReported
)

var (
	errFrozen      = &gitrepo.Error{Kind: gitrepo.Rejected, Op: "push", Message: "the branch is frozen"}
	errUnreachable = &gitrepo.Error{Kind: gitrepo.Unreachable, Op: "push", Message: "connection refused"}
)

// checkConditions compares conditions. All must have the generation, a reason and a message.
func checkConditions(t *testing.T, conditions []metav1.Condition, generation int64, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, c := range conditions {
		got[c.Type] = string(c.Status) + " " + c.Reason
		if c.ObservedGeneration != generation || c.LastTransitionTime.IsZero() || c.Message == "" || c.Reason == "" {
			t.Errorf("incomplete condition %+v", c)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong conditions (-want +got):\n%s", diff)
	}
}

// TestConditionsOfDestinations checks the conditions that differ from usual, by type. An empty value means that the condition is absent.
func TestConditionsOfDestinations(t *testing.T) {
	usual := map[string]string{
		ready: "True Succeeded", denied: "False AccessGranted", conflict: "False Owned",
		encrypted: "False SecretsOmitted", reported: "True Reported",
	}
	for name, tt := range map[string]struct {
		change  func(*inputs)
		record  func(*snapshot)
		failure error
		reports authorReports
		want    map[string]string
	}{
		"as usual": {},
		"no repository": {
			change: func(in *inputs) { in.repositories = nil },
			want: map[string]string{
				ready: "False RepositoryNotFound", stalled: "True RepositoryNotFound", denied: "Unknown RepositoryNotFound",
			},
		},
		"not admitted": {
			change: func(in *inputs) {
				in.repositories[0].Namespace = "ops"
				in.destinations[0].Spec.RepoRef.Namespace = "ops"
			},
			want: map[string]string{ready: "False AccessNotGranted", stalled: "True AccessNotGranted", denied: "True AccessNotGranted"},
		},
		"another branch": {
			change: func(in *inputs) { in.destinations[0].Spec.Branch = "release" },
			want:   map[string]string{ready: "False BranchNotAllowed", stalled: "True BranchNotAllowed"},
		},
		"suspended": {
			change:  func(in *inputs) { in.destinations[0].Spec.Suspend = true },
			failure: errFrozen, want: map[string]string{ready: "False Suspended"},
		},
		"refused": {failure: errFrozen, want: map[string]string{ready: "False PushRejected", stalled: "True PushRejected"}},
		"down":    {failure: errUnreachable, want: map[string]string{ready: "False RepositoryUnreachable"}},
		"a disk that is full": {
			failure: errors.New("no space left on device"), want: map[string]string{ready: "False PushFailed"},
		},
		"not read yet": {
			record: func(s *snapshot) { s.served, s.ownerKnown = false, false },
			want:   map[string]string{ready: "False Progressing", reconciling: "True Progressing", conflict: ""},
		},
		"unclaimed":       {record: func(s *snapshot) { s.owner = nil }, want: map[string]string{conflict: "False Unclaimed"}},
		"another owner's": {record: func(s *snapshot) { s.conflict = "it is theirs" }, want: map[string]string{conflict: "True OwnedByAnother"}},
		"Secrets as they are": {
			change: func(in *inputs) { in.destinations[0].Spec.Secrets = v1alpha1.SecretsAsIs },
			want:   map[string]string{encrypted: "False SecretsAsIs"},
		},
		"Secrets without a key": {
			change: func(in *inputs) { in.destinations[0].Spec.Secrets = v1alpha1.SecretsEncrypt },
			want:   map[string]string{encrypted: "False EncryptionUnavailable"},
		},
		"no reports": {
			reports: authorReports{known: true, problem: conditions.Reason{Code: v1alpha1.ReasonAuditSilent, Message: "no audit event has come"}},
			want:    map[string]string{reported: "False AuditSilent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := world()
			in.destinations[0].Generation, in.destinations[0].Spec.Secrets = 3, v1alpha1.SecretsOmit
			if tt.change != nil {
				tt.change(&in)
			}
			d := newDestination(in.destinations[0])
			d.plan.Store(newPlan(in).destinations[d.key])
			d.record.now.served, d.record.now.ownerKnown, d.record.now.owner = true, true, &v1alpha1.OwnerMarker{}
			if tt.record != nil {
				tt.record(&d.record.now)
			}
			if tt.reports == (authorReports{}) {
				tt.reports.known = true
			}
			want := maps.Clone(usual)
			maps.Copy(want, tt.want)
			maps.DeleteFunc(want, func(_, reason string) bool { return reason == "" })
			checkConditions(t, destinationConditions(d, tt.failure, "", tt.reports, nil), 3, want)
		})
	}
}

// TestConditionOfDestinationSaysWhetherRulesReferToIt checks the message of a destination that is ready.
func TestConditionOfDestinationSaysWhetherRulesReferToIt(t *testing.T) {
	for want, rules := range map[string]int{
		"The folder holds what the rules select":                             1,
		"No rule refers to the GitDestination, so nothing is mirrored to it": 0,
	} {
		in := world()
		in.rules = in.rules[:rules]
		d := newDestination(in.destinations[0])
		d.plan.Store(newPlan(in).destinations[d.key])
		d.record.now.served = true
		got := meta.FindStatusCondition(destinationConditions(d, nil, "", authorReports{}, nil), ready)
		if got.Status != metav1.ConditionTrue || got.Message != want {
			t.Errorf("Ready is %+v, want the message %q", got, want)
		}
	}
}

// TestConditionsOfRules checks that a rule is not ready while its changes are not written to Git, whatever the reason.
func TestConditionsOfRules(t *testing.T) {
	usual := map[string]string{ready: "True Succeeded", denied: "False AccessGranted"}
	for name, tt := range map[string]struct {
		change  func(*inputs)
		failure error
		// comparing is set if the comparison with the folder has not ended.
		comparing bool
		want      map[string]string
	}{
		"as usual": {},
		"no destination": {
			change: func(in *inputs) { in.destinations = nil },
			want: map[string]string{
				ready: "False DestinationNotFound", stalled: "True DestinationNotFound", denied: "Unknown DestinationNotFound",
			},
		},
		"no repository": {
			change: func(in *inputs) { in.repositories = nil },
			want: map[string]string{
				ready: "False DestinationNotReady", stalled: "True DestinationNotReady", denied: "Unknown DestinationNotReady",
			},
		},
		"another branch": {
			change: func(in *inputs) { in.destinations[0].Spec.Branch = "release" },
			want:   map[string]string{ready: "False DestinationNotReady", stalled: "True DestinationNotReady"},
		},
		"not admitted": {
			change: func(in *inputs) { in.rules[0].Namespace, in.rules[0].Spec.DestinationRef.Namespace = "dev", "shop" },
			want:   map[string]string{ready: "False AccessNotGranted", stalled: "True AccessNotGranted", denied: "True AccessNotGranted"},
		},
		"a type that is missing": {
			change:  func(in *inputs) { in.rules[0].Spec.Rules[0].Resources = []string{"configmaps", "gadgets"} },
			failure: errFrozen, want: map[string]string{ready: "False TypeNotFound", stalled: "True TypeNotFound"},
		},
		"refused":        {failure: errFrozen, want: map[string]string{ready: "False DestinationNotReady", stalled: "True DestinationNotReady"}},
		"down":           {failure: errUnreachable, want: map[string]string{ready: "False DestinationNotReady"}},
		"being compared": {comparing: true, want: map[string]string{ready: "False Progressing", reconciling: "True Progressing"}},
		"refused before it is compared": {
			failure: errFrozen, comparing: true,
			want: map[string]string{ready: "False DestinationNotReady", stalled: "True DestinationNotReady"},
		},
		"suspended": {
			change: func(in *inputs) { in.destinations[0].Spec.Suspend = true }, want: map[string]string{ready: "False DestinationNotReady"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := world()
			in.rules[0].Generation = 3
			if tt.change != nil {
				tt.change(&in)
			}
			p := newPlan(in)
			rule := p.rules[nameOf(in.rules[0])]
			reporter := &publisher{watches: newWatchStates(), registry: newRegistry(nil, nil, nil)}
			for key, plan := range p.destinations {
				d := newDestination(plan.object)
				d.plan.Store(plan)
				d.record.now.failure = tt.failure
				d.seeds.types[configMaps] = &seedState{time: time.Unix(1000, 0), whole: tt.comparing}
				reporter.registry.destinations[key] = d
			}
			reporter.watches.update(watch.Watch{Resource: configMaps, Namespace: "shop"}, func(s *watchState) { s.listed = true })
			v, destination := reporter.ruleProblem(rule)
			status := &v1alpha1.WatchRuleStatus{}
			updateRuleStatus(rule, v, destination, status)
			want := maps.Clone(usual)
			maps.Copy(want, tt.want)
			checkConditions(t, status.Conditions, 3, want)
		})
	}
}

// TestRuleSaysWhyItsDestinationIsNotReady checks that the condition of a rule has the name and the problem of its destination.
func TestRuleSaysWhyItsDestinationIsNotReady(t *testing.T) {
	in := world()
	rule := newPlan(in).rules[nameOf(in.rules[0])]
	status := &v1alpha1.WatchRuleStatus{}
	updateRuleStatus(rule, conditions.Reason{}, reasonOf(errFrozen, v1alpha1.ReasonPushFailed), status)
	const want = "GitDestination shop/main is not ready, PushRejected: cannot push: the branch is frozen"
	if got := meta.FindStatusCondition(status.Conditions, ready); got == nil || got.Message != want {
		t.Errorf("Ready is %+v, want the message %q", got, want)
	}
}

// TestRuleOfDestinationWithoutSecret deletes the Secret of a destination that was ready, and has everything compared again.
func TestRuleOfDestinationWithoutSecret(t *testing.T) {
	s := newFixture(t, pollOften, func(s *fixture) {
		s.in.repositories[0].Spec.SecretRef = &v1alpha1.SecretReference{Name: "git"}
		s.putSecret("git", map[string][]byte{"username": []byte("bot"), "password": []byte("pa55")})
		s.git.require("bot", "pa55")
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.waitReady("main", v1alpha1.ReasonSucceeded)
	if err := s.secrets.CoreV1().Secrets("shop").Delete(t.Context(), "git", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.waitReady("main", v1alpha1.ReasonSecretNotFound)
	s.destination("main").seeds.invalidateAll()
	rule, status := newPlan(s.in).rules[nameOf(s.in.rules[0])], &v1alpha1.WatchRuleStatus{}
	problem, destination := s.publisher.ruleProblem(rule)
	updateRuleStatus(rule, problem, destination, status)
	const want = "GitDestination shop/main is not ready, SecretNotFound: there is no Secret shop/git (spec.secretRef)"
	if got := meta.FindStatusCondition(status.Conditions, ready); got.Message != want {
		t.Errorf("Ready is %+v, want the message %q", got, want)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, stalled) || meta.FindStatusCondition(status.Conditions, reconciling) != nil {
		t.Errorf("conditions are %+v, want Stalled and not Reconciling", status.Conditions)
	}
}

// TestConditionsOfRepositories checks that every error of a repository has its own reason.
func TestConditionsOfRepositories(t *testing.T) {
	for name, tt := range map[string]struct {
		failure error
		want    map[string]string
	}{
		"as usual": {nil, map[string]string{ready: "True Succeeded"}},
		"down":     {errUnreachable, map[string]string{ready: "False RepositoryUnreachable"}},
		"missing": {
			&gitrepo.Error{Kind: gitrepo.NotFound, Op: "checking the repository", Message: "not found"},
			map[string]string{ready: "False RepositoryNotFound", stalled: "True RepositoryNotFound"},
		},
		"wrong password": {
			&gitrepo.Error{Kind: gitrepo.Unauthorized, Op: "checking the repository", Message: "401"},
			map[string]string{ready: "False AuthenticationFailed", stalled: "True AuthenticationFailed"},
		},
		"no Secret": {
			refused(v1alpha1.ReasonSecretNotFound, "there is no Secret %s", "shop/git"),
			map[string]string{ready: "False SecretNotFound", stalled: "True SecretNotFound"},
		},
		"refused": {errFrozen, map[string]string{ready: "False PushRejected", stalled: "True PushRejected"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := &v1alpha1.GitRepoConfig{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			if !updateRepositoryStatus(config, 3, reasonOf(tt.failure, v1alpha1.ReasonRepositoryUnreachable), "") {
				t.Error("the report does not change the conditions")
			}
			checkConditions(t, config.Status.Conditions, 3, tt.want)
		})
	}
}

// TestConditionOfRedirectedRepository checks that a repository that was renamed is ready, and that its condition names the new URL.
func TestConditionOfRedirectedRepository(t *testing.T) {
	const url = "https://git.example.com/shop/renamed"
	config := &v1alpha1.GitRepoConfig{}
	updateRepositoryStatus(config, 1, conditions.Reason{}, redirectNote(url))
	if got := meta.FindStatusCondition(config.Status.Conditions, ready); got.Status != metav1.ConditionTrue ||
		!strings.Contains(got.Message, "The server redirects to "+url+": set spec.repoUrl to that URL") {
		t.Errorf("condition %+v", got)
	}
	if updateRepositoryStatus(config, 1, conditions.Reason{}, ""); strings.Contains(meta.FindStatusCondition(config.Status.Conditions, ready).Message, url) {
		t.Errorf("conditions %+v after the redirect", config.Status.Conditions)
	}
}

// TestStateOfFailures checks that the state of a record says whether a user must change something, as the condition Stalled does.
func TestStateOfFailures(t *testing.T) {
	for want, failure := range map[string]error{
		"Not mirrored: there is no Secret shop/git":       refused(v1alpha1.ReasonSecretNotFound, "there is no Secret shop/git"),
		"Not mirrored: cannot push: the branch is frozen": errFrozen,
		"Retrying: cannot push: connection refused":       errUnreachable,
		"Retrying: the store is full":                     errors.New("the store is full"),
	} {
		in := world()
		d := newDestination(in.destinations[0])
		d.plan.Store(newPlan(in).destinations[d.key])
		if got := newRecord(d, failure, 0, nil).Status.State; got != want {
			t.Errorf("state = %q, want %q", got, want)
		}
		current := destinationConditions(d, failure, "", authorReports{}, nil)
		if got := meta.IsStatusConditionTrue(current, stalled); got != strings.HasPrefix(want, "Not mirrored") {
			t.Errorf("%q, although Stalled is %t", want, got)
		}
	}
}

// TestRecordHasNextAttempt checks that the record has the time of the next retry only while the branch is retried.
func TestRecordHasNextAttempt(t *testing.T) {
	next := time.Unix(5000, 0)
	for name, tt := range map[string]struct {
		change  func(*destination)
		failure error
		want    *metav1.Time
	}{
		"nothing failed":          {failure: nil},
		"failed":                  {func(d *destination) { d.record.failed(errFrozen, next) }, errFrozen, &metav1.Time{Time: next}},
		"held":                    {func(d *destination) { d.record.refuses(errFrozen, next) }, errFrozen, &metav1.Time{Time: next}},
		"failed and recovered":    {func(d *destination) { d.record.failed(errFrozen, next); d.record.succeeded() }, nil, nil},
		"kept back by the server": {func(d *destination) { d.record.failed(errFrozen, next) }, errors.New("the store is full"), nil},
		"another owner's": {func(d *destination) {
			d.record.failed(errFrozen, next)
			d.record.owned(ownership{refused: errUnreachable})
		}, errUnreachable, nil},
		"suspended": {func(d *destination) {
			d.record.failed(errFrozen, next)
			d.plan.Load().object.Spec.Suspend = true
		}, errFrozen, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := world()
			d := newDestination(in.destinations[0])
			d.plan.Store(newPlan(in).destinations[d.key])
			if tt.change != nil {
				tt.change(d)
			}
			if got := newRecord(d, tt.failure, 0, nil).Status.NextAttemptTime; !got.Equal(tt.want) {
				t.Errorf("next attempt = %v, want %v", got, tt.want)
			}
		})
	}
}

// TestGaps checks that a destination whose rules are not all followed does not say that its folder has everything.
func TestGaps(t *testing.T) {
	for name, tt := range map[string]struct {
		held, referred bool
		failing        int
		state, message string
	}{
		"none": {referred: true, state: "Up to date", message: "The folder holds what the rules select"},
		"types that cannot be watched": {
			referred: true, failing: 2, state: "Up to date, except for 2 types that cannot be watched",
			message: "The folder holds what the rules select, except for 2 types that cannot be watched",
		},
		"one of the rules": {
			referred: true, held: true, state: "Up to date, except for rules that are not in force",
			message: "The folder holds what the rules select, except for rules that are not in force",
		},
		"all rules": {
			held: true, state: "No rule that refers to it is in force",
			message: "No rule that refers to the GitDestination is in force, so its files stay as they are",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := world()
			d := newDestination(in.destinations[0])
			p := newPlan(in).destinations[d.key]
			p.held, p.referred = tt.held, tt.referred
			d.plan.Store(p)
			d.record.now.served = true
			missing := gaps(p, slices.Repeat([]v1alpha1.ResourceTypeWatch{{State: v1alpha1.WatchStateFailing}}, tt.failing))
			if got := summarize(d, nil, missing); got != tt.state {
				t.Errorf("state %q, want %q", got, tt.state)
			}
			got := meta.FindStatusCondition(destinationConditions(d, nil, missing, authorReports{}, nil), ready)
			if got.Message != tt.message {
				t.Errorf("message %q, want %q", got.Message, tt.message)
			}
		})
	}
}
