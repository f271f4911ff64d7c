// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

const (
	recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
	// otherRecipient differs from recipient in one character, so that its checksum is wrong.
	otherRecipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8q"
)

func destination() *configbutler.GitDestination {
	return &configbutler.GitDestination{
		ObjectMeta: meta("destination"),
		Spec: configbutler.GitDestinationSpec{
			RepoRef:     configbutler.ObjectReference{Name: "repository"},
			Branch:      "main",
			BaseFolder:  "clusters/production",
			Granularity: configbutler.GranularityPerAuthor,
			Secrets:     configbutler.SecretsEncrypt,
			Encryption:  &configbutler.Encryption{AgeRecipients: []string{recipient}},
			Prune:       configbutler.PruneAlways,
			Ignore:      []configbutler.IgnoreRule{{Fields: []string{"/spec/replicas"}}},
		},
	}
}

// pullRequest returns a delivery by pull request, as change makes it.
func pullRequest(change func(*configbutler.PullRequestDelivery)) *configbutler.Delivery {
	pull := &configbutler.PullRequestDelivery{
		BranchPrefix: "slipstream/", Title: "Changes", Body: "From production.", Labels: []string{"mirror"}, Reviewers: []string{"alice"},
		MaxOpenAge: &metav1.Duration{Duration: time.Hour},
	}
	if change != nil {
		change(pull)
	}
	return &configbutler.Delivery{Type: configbutler.DeliveryPullRequest, PullRequest: pull}
}

func TestGitDestination(t *testing.T) {
	type dest = *configbutler.GitDestination
	checkChanges(t, destination, validation.ValidateGitDestination, validation.ValidateGitDestinationUpdate, []change[dest]{
		{name: "a repository in another namespace", do: func(d dest) { d.Spec.RepoRef.Namespace = "team-b" }},
		{name: "another repository, branch and folder", do: func(d dest) {
			d.Spec.RepoRef.Name, d.Spec.Branch, d.Spec.BaseFolder = "other", "other", ""
		}},
		{
			name: "no repository", do: func(d dest) { d.Spec.RepoRef.Name = "" },
			path: "spec.repoRef.name", says: "Required",
		},
		{
			name: "a namespace that cannot be", do: func(d dest) { d.Spec.RepoRef.Namespace = "a.b" },
			path: "spec.repoRef.namespace", says: "must not contain dots",
		},
		{
			name: "no branch", do: func(d dest) { d.Spec.Branch = "" },
			path: "spec.branch", says: "such as main",
		},
		{name: "a delivery by pull request", do: func(d dest) { d.Spec.Delivery = pullRequest(nil) }},
		{name: "pushes", do: func(d dest) { d.Spec.Delivery = &configbutler.Delivery{Type: configbutler.DeliveryPush} }},
		{
			name: "an unknown delivery", do: func(d dest) { d.Spec.Delivery = &configbutler.Delivery{Type: "Mail"} },
			path: "spec.delivery.type", says: `"Push", "PullRequest"`,
		},
		{
			name: "a pull request beside pushes",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(nil)
				d.Spec.Delivery.Type = configbutler.DeliveryPush
			},
			path: "spec.delivery.pullRequest", says: "unless type is PullRequest",
		},
		{
			name: "a prefix of a branch that cannot be",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.BranchPrefix = "a..b/" })
			},
			path: "spec.delivery.pullRequest.branchPrefix", says: "must not contain ..",
		},
		{
			name: "a prefix that makes the branch of another namespace",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.BranchPrefix = "slipstream/team-" })
			},
			path: "spec.delivery.pullRequest.branchPrefix", says: "ends with /",
		},
		{
			name: "a prefix of two segments",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.BranchPrefix = "a/b/" })
			},
			path: "spec.delivery.pullRequest.branchPrefix", says: "one segment",
		},
		{
			name: "a branch that is its own base",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(nil)
				d.Spec.Branch = "slipstream/" + d.Namespace + "/" + d.Name
			},
			path: "spec.delivery.pullRequest.branchPrefix", says: "to which changes are proposed",
		},
		{
			name: "a title of two lines",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.Title = "a\nb" })
			},
			path: "spec.delivery.pullRequest.title", says: "one line",
		},
		{
			name: "a title that is too long",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.Title = strings.Repeat("a", 201) })
			},
			path: "spec.delivery.pullRequest.title", says: "200",
		},
		{
			name: "a body that is too long",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.Body = strings.Repeat("a", 2001) })
			},
			path: "spec.delivery.pullRequest.body", says: "2000",
		},
		{
			name: "too many labels",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.Labels = strings.Split(strings.Repeat("a,", 20), ",") })
			},
			path: "spec.delivery.pullRequest.labels", says: "at most 20",
		},
		{
			name: "a reviewer without a name",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.Reviewers = []string{" "} })
			},
			path: "spec.delivery.pullRequest.reviewers[0]", says: "one line",
		},
		{
			name: "a pull request that is overdue at once",
			do: func(d dest) {
				d.Spec.Delivery = pullRequest(func(p *configbutler.PullRequestDelivery) { p.MaxOpenAge = &metav1.Duration{Duration: time.Minute} })
			},
			path: "spec.delivery.pullRequest.maxOpenAge", says: "at least 1h",
		},
		{
			name: "an unknown granularity", do: func(d dest) { d.Spec.Granularity = "PerObject" },
			path: "spec.granularity", says: `"PerAuthor", "PerChange", "Batch"`,
		},
		{
			name: "an unknown way with Secrets", do: func(d dest) { d.Spec.Secrets = "Plain" },
			path: "spec.secrets", says: `"Encrypt", "AsIs", "Omit"`,
		},
		{
			name: "an unknown way to prune", do: func(d dest) { d.Spec.Prune = "Sometimes" },
			path: "spec.prune", says: `"Always", "Never"`,
		},
		{
			name: "recipients of Secrets that are written plainly", do: func(d dest) { d.Spec.Secrets = configbutler.SecretsAsIs },
			path: "spec.encryption", says: "absent when secrets is AsIs",
		},
		{name: "recipients of Secrets that are left out", do: func(d dest) { d.Spec.Secrets = configbutler.SecretsOmit }},
		{
			name: "a recipient twice", do: func(d dest) { d.Spec.Encryption.AgeRecipients = []string{recipient, recipient} },
			path: "spec.encryption.ageRecipients[1]", says: "Duplicate",
		},
		{
			name: "a recipient with a slip of the pen", do: func(d dest) { d.Spec.Encryption.AgeRecipients[0] = otherRecipient },
			path: "spec.encryption.ageRecipients[0]", says: "age1 and 58 characters",
		},
		{
			name: "a recipient with an impossible character", do: func(d dest) { d.Spec.Encryption.AgeRecipients[0] = recipient[:61] + "b" },
			path: "spec.encryption.ageRecipients[0]", says: "age1 and 58 characters",
		},
		{
			name: "a recipient that is too short", do: func(d dest) { d.Spec.Encryption.AgeRecipients[0] = recipient[:61] },
			path: "spec.encryption.ageRecipients[0]", says: "age1 and 58 characters",
		},
		{
			name: "a recipient of another kind", do: func(d dest) { d.Spec.Encryption.AgeRecipients[0] = "ssh-ed25519 AAAA" },
			path: "spec.encryption.ageRecipients[0]", says: "age1 and 58 characters",
		},
	})
}

func TestAPrivateKeyAmongTheRecipientsIsNotShown(t *testing.T) {
	const key = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
	errs := validation.ValidateGitDestination(with(destination(), func(d *configbutler.GitDestination) {
		d.Spec.Encryption.AgeRecipients = []string{key}
	}))
	change[struct{}]{path: "spec.encryption.ageRecipients[0]", says: "counts as disclosed"}.check(t, errs)
	if strings.Contains(errs[0].Error(), key) {
		t.Errorf("the error shows the key: %v", errs[0])
	}
}

func TestBaseFolder(t *testing.T) {
	tests := []struct {
		folder  string
		refused bool
	}{
		{folder: ""}, {folder: "a"}, {folder: "clusters/production"}, {folder: "ünï/日本"}, {folder: "a b/c"}, {folder: ".github/x"},
		{folder: "...a"}, {folder: "git"}, {folder: ".gitops"}, {folder: strings.Repeat("a/", 100) + "a"},

		{folder: "/", refused: true}, {folder: "/a", refused: true}, {folder: "a/", refused: true}, {folder: "a//b", refused: true},
		{folder: ".", refused: true}, {folder: "..", refused: true}, {folder: "../a", refused: true}, {folder: "a/../b", refused: true},
		{folder: "a/..", refused: true}, {folder: "./a", refused: true}, {folder: "a/./b", refused: true},
		{folder: "a/.gitmodules/b", refused: true}, {folder: "GITMOD~1", refused: true}, {folder: "a/gi7eba~1", refused: true},
		{folder: ".GitAttributes", refused: true}, {folder: "a/.gitignore", refused: true}, {folder: ".mailmap/a", refused: true},
		{folder: ".git", refused: true}, {folder: "a/.GIT/b", refused: true}, {folder: "git~1", refused: true},
		{folder: ".g\u200cit", refused: true}, {folder: ".git.", refused: true}, {folder: "a/.configbutler", refused: true},
		{folder: `a\b`, refused: true}, {folder: "c:", refused: true}, {folder: "a*", refused: true}, {folder: "a\x00b", refused: true},
		{folder: "a\nb", refused: true}, {folder: "a\u202eb", refused: true}, {folder: "a\xff", refused: true},
		{folder: " a", refused: true}, {folder: "a /b", refused: true}, {folder: "a./b", refused: true},
		{folder: strings.Repeat("a", 256), refused: true}, {folder: strings.Repeat("a/", 1000) + "a", refused: true},
	}
	for _, test := range tests {
		t.Run(test.folder, func(t *testing.T) {
			errs := validation.ValidateGitDestination(with(destination(), func(d *configbutler.GitDestination) {
				d.Spec.BaseFolder = test.folder
			}))
			if !test.refused {
				change[struct{}]{}.check(t, errs)
				return
			}
			change[struct{}]{path: "spec.baseFolder", says: "must"}.check(t, errs)
			stored := with(destination(), func(d *configbutler.GitDestination) { d.Spec.BaseFolder = test.folder })
			moved := validation.ValidateGitDestinationUpdate(stored.DeepCopy(), destination())
			change[struct{}]{path: "spec.baseFolder", says: "must"}.check(t, moved)
			change[struct{}]{}.check(t, validation.ValidateGitDestinationUpdate(stored.DeepCopy(), stored))
		})
	}
}

func TestIgnore(t *testing.T) {
	type rule = *configbutler.IgnoreRule
	ignoring := func(r configbutler.IgnoreRule) *configbutler.GitDestination {
		return with(destination(), func(d *configbutler.GitDestination) { d.Spec.Ignore = []configbutler.IgnoreRule{r} })
	}
	tests := []change[rule]{
		{name: "a field of one object", do: func(r rule) {
			*r = configbutler.IgnoreRule{
				Target: configbutler.IgnoreTarget{Group: ptr.To("apps"), Kind: "Deployment", Name: "web"},
				Fields: []string{"/spec/template/spec/containers[name=web]/image"},
			}
		}},
		{name: "the core group", do: func(r rule) { r.Target.Group = ptr.To("") }},
		{name: "a manager", do: func(r rule) { r.Fields, r.Managers = nil, []string{"kube-controller-manager"} }},
		{name: "a key with a slash", do: func(r rule) { r.Fields[0] = "/metadata/annotations/example.com~1owner" }},
		{name: "an item with two keys", do: func(r rule) { r.Fields[0] = "/spec/ports[port=80,protocol=TCP]/targetPort" }},
		{name: "an item by itself", do: func(r rule) { r.Fields[0] = "/spec/containers[name=side-car]" }},
		{
			name: "nothing", do: func(r rule) { r.Fields = nil },
			path: "spec.ignore[0]", says: "name fields, managers, or both",
		},
		{
			name: "a group that cannot be", do: func(r rule) { r.Target.Group = ptr.To("*") },
			path: "spec.ignore[0].target.group", says: "absent for every group",
		},
		{
			name: "a resource for a kind", do: func(r rule) { r.Target.Kind = "deployments" },
			path: "spec.ignore[0].target.kind", says: "such as Deployment",
		},
		{
			name: "a name with a slash", do: func(r rule) { r.Target.Name = "a/b" },
			path: "spec.ignore[0].target.name", says: "may not contain '/'",
		},
		{
			name: "a manager without a name", do: func(r rule) { r.Managers = []string{""} },
			path: "spec.ignore[0].managers[0]", says: "1 to 128",
		},
		{
			name: "the whole metadata", do: func(r rule) { r.Fields[0] = "/metadata" },
			path: "spec.ignore[0].fields[0]", says: "what tells objects apart",
		},
		{
			name: "a JSON path", do: func(r rule) { r.Fields[0] = ".spec.replicas" },
			path: "spec.ignore[0].fields[0]", says: "/spec/replicas",
		},
		{
			name: "everything", do: func(r rule) { r.Fields[0] = "" },
			path: "spec.ignore[0].fields[0]", says: "/spec/replicas",
		},
		{
			name: "an empty segment", do: func(r rule) { r.Fields[0] = "/spec//replicas" },
			path: "spec.ignore[0].fields[0]", says: "JSON pointer",
		},
		{
			name: "a tilde that escapes nothing", do: func(r rule) { r.Fields[0] = "/metadata/annotations/a~b" },
			path: "spec.ignore[0].fields[0]", says: "~0 for ~",
		},
		{
			name: "an item without a key", do: func(r rule) { r.Fields[0] = "/spec/containers[web]/image" },
			path: "spec.ignore[0].fields[0]", says: "[name=web]",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rule := configbutler.IgnoreRule{Fields: []string{"/spec/replicas"}}
			test.do(&rule)
			test.check(t, validation.ValidateGitDestination(ignoring(rule)))
		})
	}
}
