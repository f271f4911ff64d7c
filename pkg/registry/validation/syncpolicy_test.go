// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// syncPolicy is the one that says nothing, with its defaults.
func syncPolicy() *configbutler.SyncPolicy {
	said := &v1alpha1.SyncPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default", ResourceVersion: "1"}}
	v1alpha1.SetObjectDefaults_SyncPolicy(said)
	policy := &configbutler.SyncPolicy{}
	if err := v1alpha1.Convert_v1alpha1_SyncPolicy_To_configbutler_SyncPolicy(said, policy, nil); err != nil {
		panic(err)
	}
	return policy
}

func lasting(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func TestSyncPolicy(t *testing.T) {
	type pol = *configbutler.SyncPolicy
	destination := &configbutler.NamespacedObjectReference{Namespace: "team-a", Name: "records"}
	checkChanges(t, syncPolicy, validation.ValidateSyncPolicy, validation.ValidateSyncPolicyUpdate, []change[pol]{
		{name: "everything stopped", do: func(p pol) {
			p.Spec.Suspend = configbutler.SuspendedWork{EnvironmentAutoSync: true, DependencyAutoSync: true, CatalogNotices: true, Pipelines: true, Notifications: true}
		}},
		{name: "an archive", do: func(p pol) { p.Spec.Retention.Archive = &configbutler.Archive{Type: configbutler.ArchiveFile} }},
		{name: "an archive in Git", do: func(p pol) {
			p.Spec.Retention.Archive = &configbutler.Archive{Type: configbutler.ArchiveGitDestination, DestinationRef: destination}
		}},
		{name: "nothing kept", do: func(p pol) { p.Spec.Retention.KeepPerSubject = ptr.To(int32(0)) }},
		{name: "marks", do: func(p pol) { p.Spec.TrackingMarks = []string{"owner", "example.com/owner=tool", "example.com/*"} }},
		{
			name: "a mark that is no key", do: func(p pol) { p.Spec.TrackingMarks = []string{"owner", "no key"} },
			path: "spec.trackingMarks[1]", says: "all keys of a domain, as in example.com/*",
		},
		{
			name: "a mark twice", do: func(p pol) { p.Spec.TrackingMarks = []string{"owner", "example.com/*", "owner"} },
			path: "spec.trackingMarks[2]", says: "Duplicate value: \"owner\"",
		},
		{
			name: "marks beyond number", do: func(p pol) { p.Spec.TrackingMarks = make([]string, 101) },
			path: "spec.trackingMarks", says: "must have at most 100 items",
		},
		{name: "the same backoff each time", do: func(p pol) { p.Spec.Retry.MaxBackoff = p.Spec.Retry.Backoff }},
		{
			name: "a window that is too short", do: func(p pol) { p.Spec.BatchWindow = lasting(time.Millisecond) },
			path: "spec.batchWindow", says: "at least 1s and at most 1h",
		},
		{
			name: "a window that is too long", do: func(p pol) { p.Spec.BatchWindow = lasting(2 * time.Hour) },
			path: "spec.batchWindow", says: "at least 1s and at most 1h",
		},
		{
			name: "no syncs", do: func(p pol) { p.Spec.MaxSyncsPerMinute = ptr.To(int32(0)) },
			path: "spec.maxSyncsPerMinute", says: "at least 1 and at most 10000",
		},
		{
			name: "no attempt", do: func(p pol) { p.Spec.Retry.MaxAttempts = ptr.To(int32(0)) },
			path: "spec.retry.maxAttempts", says: "at least 1 and at most 100",
		},
		{
			name: "no backoff", do: func(p pol) { p.Spec.Retry.Backoff = lasting(0) },
			path: "spec.retry.backoff", says: "at least 1s and at most 1h",
		},
		{
			name: "a backoff beyond its bound", do: func(p pol) { p.Spec.Retry.Backoff = lasting(11 * time.Minute) },
			path: "spec.retry.maxBackoff", says: "at least 11m and at most 24h",
		},
		{
			name: "no retention", do: func(p pol) { p.Spec.Retention.Days = ptr.To(int32(0)) },
			path: "spec.retention.days", says: "at least 1 and at most 3650",
		},
		{
			name: "less than nothing kept", do: func(p pol) { p.Spec.Retention.KeepPerSubject = ptr.To(int32(-1)) },
			path: "spec.retention.keepPerSubject", says: "at least 0 and at most 10000",
		},
		{
			name: "more kept than there may be", do: func(p pol) { p.Spec.Retention.KeepPerSubject = ptr.To(int32(1001)) },
			path: "spec.retention.maxPerSubject", says: "at least 1001 and at most 100000",
		},
		{
			name: "an archive of an unknown type", do: func(p pol) { p.Spec.Retention.Archive = &configbutler.Archive{Type: "Tape"} },
			path: "spec.retention.archive.type", says: `"File", "GitDestination"`,
		},
		{
			name: "an archive in no destination", do: func(p pol) {
				p.Spec.Retention.Archive = &configbutler.Archive{Type: configbutler.ArchiveGitDestination}
			},
			path: "spec.retention.archive.destinationRef", says: "needs it",
		},
		{
			name: "an archive in a destination of no namespace", do: func(p pol) {
				p.Spec.Retention.Archive = &configbutler.Archive{
					Type: configbutler.ArchiveGitDestination, DestinationRef: &configbutler.NamespacedObjectReference{Name: "records"},
				}
			},
			path: "spec.retention.archive.destinationRef.namespace", says: "Required",
		},
		{
			name: "a file in a destination", do: func(p pol) {
				p.Spec.Retention.Archive = &configbutler.Archive{Type: configbutler.ArchiveFile, DestinationRef: destination}
			},
			path: "spec.retention.archive.destinationRef", says: "unless type is GitDestination",
		},
		{name: "no reminders", do: func(p pol) {
			p.Spec.Reminders = configbutler.Reminders{After: []metav1.Duration{}, Every: lasting(0)}
		}},
		{name: "reminders", do: func(p pol) {
			p.Spec.Reminders.After = []metav1.Duration{*lasting(time.Minute), *lasting(8760 * time.Hour)}
		}},
		{
			name: "more reminders than there may be", do: func(p pol) { p.Spec.Reminders.After = make([]metav1.Duration, 11) },
			path: "spec.reminders.after", says: "at most 10",
		},
		{
			name: "a reminder at once", do: func(p pol) { p.Spec.Reminders.After[0] = *lasting(time.Second) },
			path: "spec.reminders.after[0]", says: "at least 1m and at most 8760h",
		},
		{
			name: "reminders in another order", do: func(p pol) { p.Spec.Reminders.After[1] = p.Spec.Reminders.After[0] },
			path: "spec.reminders.after[1]", says: "must be more than the time before it, 24h",
		},
		{
			name: "reminders all the time", do: func(p pol) { p.Spec.Reminders.Every = lasting(time.Minute) },
			path: "spec.reminders.every", says: "0s for no further reminders, or at least 1h and at most 8760h",
		},
		{
			name: "no dismissal", do: func(p pol) { p.Spec.MaxDismissals = ptr.To(int32(0)) },
			path: "spec.maxDismissals", says: "at least 1 and at most 1000",
		},
	})
}

func TestThereIsOneSyncPolicy(t *testing.T) {
	errs := validation.ValidateSyncPolicy(with(syncPolicy(), func(p *configbutler.SyncPolicy) { p.Name = "mine" }))
	change[struct{}]{path: "metadata.name", says: "must be default"}.check(t, errs)
	errs = validation.ValidateSyncPolicy(with(syncPolicy(), func(p *configbutler.SyncPolicy) { p.Namespace = "team-a" }))
	change[struct{}]{path: "metadata.namespace", says: "not allowed"}.check(t, errs)
}

func TestSyncPolicyStatus(t *testing.T) {
	type status = *configbutler.SyncPolicyStatus
	const says = "greater than or equal to 0"
	for _, test := range []change[status]{
		{name: "counts", do: func(s status) {
			*s = configbutler.SyncPolicyStatus{Records: 1, RecordsExpired: 2, RecordsArchived: 2, SyncsWaiting: 3}
		}},
		{name: "negative records", do: func(s status) { s.Records = -1 }, path: "status.records", says: says},
		{name: "negative expiry", do: func(s status) { s.RecordsExpired = -1 }, path: "status.recordsExpired", says: says},
		{name: "a negative archive", do: func(s status) { s.RecordsArchived = -1 }, path: "status.recordsArchived", says: says},
		{name: "negative waiting", do: func(s status) { s.SyncsWaiting = -1 }, path: "status.syncsWaiting", says: says},
		{name: "a negative generation", do: func(s status) { s.ObservedGeneration = -1 }, path: "status.observedGeneration", says: says},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy := syncPolicy()
			test.do(&policy.Status)
			test.check(t, validation.ValidateSyncPolicyStatusUpdate(policy, syncPolicy()))
		})
	}
}
