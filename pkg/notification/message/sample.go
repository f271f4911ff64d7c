// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Events returns all events, the worst first.
func Events() []v1alpha1.NotificationEvent {
	var events []v1alpha1.NotificationEvent
	for _, w := range wordings() {
		events = append(events, w.event)
	}
	return events
}

// Sample returns a notification with made-up content, or of the end of what the event says.
func Sample(event v1alpha1.NotificationEvent, recovered bool, at time.Time) Notification {
	n := sampleOf(event)
	n.ID = "sample-" + string(event)
	n.Event, n.Recovered, n.Time, n.Cluster, n.Sequence = event, recovered, at, "example", 1
	n.DedupeKey = fmt.Sprintf("sample/%s/%s/%s", n.Subject.Kind, n.Subject.Name, event)
	n.Severity = wordsFor(event).severity
	n.Headline = subject(&n) + ": " + n.Headline
	if recovered {
		n.end()
	}
	return n
}

// end turns a sample into that of the end of what it says.
func (n *Notification) end() {
	n.ID += "-recovered"
	n.Severity = v1alpha1.SeverityInfo
	n.Headline, n.State = subject(n)+": "+Label(n.Event, true), "Ready"
	n.Error, n.Command, n.Fields, n.MoreFields, n.Summary, n.Names, n.ChangedBy = "", "", nil, 0, nil, nil, nil
	if n.Subject.Kind == environmentKind {
		n.State = "Synced"
	}
}

const environmentKind = "Environment"

// CountsOf counts notifications by their events, in the order of the events.
func CountsOf(notifications []Notification) []Count {
	var counts []Count
	for _, recovered := range []bool{false, true} {
		for _, event := range Events() {
			n := 0
			for i := range notifications {
				if notifications[i].Event == event && notifications[i].Recovered == recovered {
					n++
				}
			}
			if n > 0 {
				counts = append(counts, Count{Event: event, Recovered: recovered, Count: n})
			}
		}
	}
	return counts
}

func sampleOf(event v1alpha1.NotificationEvent) Notification {
	switch event {
	case v1alpha1.NotifyCompleted, v1alpha1.NotifyDismissed:
		return sampleAnswer(event)
	case v1alpha1.NotifyFailed:
		return sampleFailure()
	case v1alpha1.NotifyConflicted:
		return sampleConflict()
	case v1alpha1.NotifyChange, v1alpha1.NotifyBypass:
		return sampleChange(event)
	case v1alpha1.NotifyDestinationFailing, v1alpha1.NotifyOwnershipConflict, v1alpha1.NotifyCatalogFailing, v1alpha1.NotifyPipelineFailing:
		return sampleFailing(event)
	}
	return samplePrompt()
}

func samplePrompt() Notification {
	return Notification{
		Subject: sampleSubject(environmentKind, "alice"), State: "3 workloads, 1 ConfigMap changed", Headline: "3 workloads, 1 ConfigMap changed",
		Summary:   []Changed{{Type: "Deployment", Added: 1, Changed: 2}, {Type: "ConfigMap", Changed: 1}},
		Names:     []string{"api", "web", "worker"},
		ChangedBy: sampleAuthors(), Commits: sampleCommits(),
		Command: "kubectl slipstream sync alice -n teams", Link: "https://slipstream.example.com/teams/alice",
	}
}

func sampleAnswer(event v1alpha1.NotificationEvent) Notification {
	n := samplePrompt()
	n.Actor = "alice@example.com"
	n.State, n.Headline, n.Command = "Synced", "Synced to revision 42", "kubectl get syncstatus alice-9sqzb -n teams"
	if event == v1alpha1.NotifyDismissed {
		n.State, n.Headline = "Dismissed: 3 workloads, 1 ConfigMap changed", "Dismissed: 3 workloads, 1 ConfigMap changed"
	}
	return n
}

func sampleFailure() Notification {
	const reason = `Deployment web: admission webhook "limits.example.com" denied the request: containers[web] needs resources.limits`
	n := samplePrompt()
	n.Headline, n.State, n.Error = "Sync failed and needs a decision", "Needs a decision: "+reason, reason
	n.Actor, n.Command = "alice@example.com", "kubectl slipstream retry alice-9sqzb -n teams"
	return n
}

func sampleConflict() Notification {
	n := samplePrompt()
	n.Headline, n.State, n.Names, n.Summary = "Conflict: fields were changed here and in the catalog", "Conflict: 2 fields", []string{"web"}, nil
	n.Command = "kubectl slipstream resolve alice -n teams"
	n.Fields = []Field{
		{Path: "/spec/template/spec/containers[name=web]/image", Type: "Changed"},
		{Path: "/spec/replicas", Type: "Changed"},
	}
	return n
}

func sampleChange(event v1alpha1.NotificationEvent) Notification {
	n := Notification{
		Subject:   Subject{Kind: "Deployment", APIVersion: "apps/v1", Namespace: "shop", Name: "web", UID: "7f1c5d8e-2b44-4b0c-9a57-1f6f0d6f3a10"},
		ChangedBy: sampleAuthors()[:1], Reason: "more traffic on Friday", Commits: sampleCommits(),
		Fields: []Field{
			{Path: "/spec/replicas", Type: "Changed", Before: sampleValue("2"), After: sampleValue("5")},
			{Path: "/spec/template/spec/containers[name=web]/env[name=TOKEN]/value", Type: "Changed", Hidden: true},
			{Path: "/metadata/labels/tier", Type: "Added", After: sampleValue(`"front"`)},
			{Path: "/metadata/annotations/example.com~1owner", Type: "Removed", Before: sampleValue(`"team-a"`)},
		},
		MoreFields: 2, Command: "kubectl slipstream show fe5de303a38d-e468e78d8733 -n shop",
	}
	n.Headline = "Updated by jane@example.com"
	if event == v1alpha1.NotifyBypass {
		n.Headline = "Updated by jane@example.com, bypassing Flux Kustomization flux-system/apps"
		n.ManagedBy = "Flux Kustomization flux-system/apps"
	}
	return n
}

// sampleFailing returns the sample of an object that does not work.
func sampleFailing(event v1alpha1.NotificationEvent) Notification {
	of := map[v1alpha1.NotificationEvent]struct{ kind, name, headline, reason, command string }{
		v1alpha1.NotifyDestinationFailing: {
			"GitDestination", "main", "Cannot write to Git", "git.example.com: 403 Forbidden: the token has expired",
			"kubectl describe gitdestination main -n teams",
		},
		v1alpha1.NotifyOwnershipConflict: {
			"GitDestination", "main", "The folder has another owner",
			"the folder clusters/example of the branch main belongs to the GitDestination main of the cluster staging",
			"kubectl describe gitdestination main -n teams",
		},
		v1alpha1.NotifyCatalogFailing: {
			"AppCatalog", "shop", "Cannot follow its source", "jane@example.com is no longer allowed to list deployments in the namespace shop",
			"kubectl describe appcatalog shop -n teams",
		},
		v1alpha1.NotifyPipelineFailing: {
			"SyncPipeline", "search", "Cannot watch or send", "index: 503 Service Unavailable, 12 attempts",
			"kubectl describe syncpipeline search",
		},
	}[event]
	n := Notification{
		Subject: sampleSubject(of.kind, of.name), Headline: of.headline, Error: of.reason, Command: of.command,
	}
	if event == v1alpha1.NotifyPipelineFailing {
		n.Subject.Namespace = "" // pipelines are cluster-scoped
	}
	return n
}

func sampleSubject(kind, name string) Subject {
	return Subject{
		Kind: kind, APIVersion: v1alpha1.SchemeGroupVersion.String(), Namespace: "teams", Name: name, UID: "0b5c0f3e-0d5a-4f0c-8f3b-6d2f8a1f9c10",
	}
}

func sampleAuthors() []Author {
	return []Author{
		{Name: "jane@example.com", Signal: string(v1alpha1.SignalAudit)}, {Name: "helm", Signal: string(v1alpha1.SignalManagedFields)},
	}
}

func sampleCommits() []Commit {
	const sha = "4f2c9e1b7d3a5c8e9f0a1b2c3d4e5f6a7b8c9d0e"
	return []Commit{{SHA: sha, URL: "https://git.example.com/shop/deploy/commit/" + sha}}
}

func sampleValue(value string) *string { return &value }
