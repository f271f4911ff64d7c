// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

func TestCommitsSayWhereTheyComeFrom(t *testing.T) {
	id := Identity{ClusterUID: "uid", Namespace: "slipstream-system", Name: "slipstream", Instance: "i"}
	jane := attribution.Author{
		Actor:  attribution.Actor{Username: "jane", Email: "jane@example.com", ImpersonatedBy: "admin\nX-ConfigButler-Attribution: forged"},
		Signal: attribution.Audit,
	}
	one := changesOf("jane:a")
	one[0].ResourceVersion = "42"
	several := changesOf("jane:a jane:b")
	hidden := changesOf("jane:a")
	hidden[0].ResourceVersion, hidden[0].Object.Name = "42", "a\u202egpj.b"
	trailers := func(operation, attribution string, more ...string) string {
		return strings.Join(append([]string{
			"X-ConfigButler-ClusterUID: uid", "X-ConfigButler-ControllerNS: slipstream-system", "X-ConfigButler-ControllerName: slipstream",
			"X-ConfigButler-InstanceID: i", "X-ConfigButler-Destination: shop/main", "X-ConfigButler-Operation: " + operation,
			"X-ConfigButler-Attribution: " + attribution,
		}, more...), "\n") + "\n"
	}
	for name, test := range map[string]struct {
		policy  *v1alpha1.CommitPolicy
		author  attribution.Author
		changes []outbox.Change
		seed    bool
		by      string
		want    string
	}{
		"by a user": {
			nil, jane, one, false, "jane <jane@example.com> Slipstream <slipstream@configbutler.ai>",
			"[UPDATE] v1/configmaps shop/a\n\n" + trailers("UPDATE", "audit", "X-ConfigButler-ResourceVersion: 42",
				`X-ConfigButler-ImpersonatedBy: admin\u000aX-ConfigButler-Attribution: forged`),
		},
		"by a field manager": {
			&v1alpha1.CommitPolicy{AuthorTemplate: "{{.Username}}{{.Name}}jane <jane@example.com>", MessageTemplate: "{{.Username}}by {{.Author}}"},
			attribution.Author{Signal: attribution.ManagedFields, Manager: "jane <jane@example.com>\nX: y"}, several, false,
			"jane jane@example.com\\u000aX: y (field manager) <field-manager@slipstream.invalid> Slipstream <slipstream@configbutler.ai>",
			"by jane jane@example.com\\u000aX: y (field manager)\n\n" + trailers("UPDATE", "managed-fields"),
		},
		"by the end of a namespace": {
			nil, attribution.Author{
				Actor:  attribution.Actor{Username: "system:serviceaccount:kube-system:namespace-controller"},
				Signal: attribution.Audit, NamespaceDeletedBy: "ann\nX: y",
			}, one, false, "kube-system/namespace-controller <kube-system/namespace-controller@uid> Slipstream <slipstream@configbutler.ai>",
			"[UPDATE] v1/configmaps shop/a\n\n" +
				trailers("UPDATE", "audit", "X-ConfigButler-ResourceVersion: 42", `X-ConfigButler-NamespaceDeletedBy: ann\u000aX: y`),
		},
		"without an author": {
			nil, attribution.Author{}, several, false, "Slipstream <slipstream@configbutler.ai> Slipstream <slipstream@configbutler.ai>",
			"[UPDATE] 2 objects: 2 updated\n\nUPDATE v1/configmaps shop/a\nUPDATE v1/configmaps shop/b\n\n" + trailers("UPDATE", "unknown"),
		},
		"of a seed": {
			nil, attribution.Author{}, several, true, "Slipstream <slipstream@configbutler.ai> Slipstream <slipstream@configbutler.ai>",
			"[SEED] 2 objects: 2 updated\n\nUPDATE v1/configmaps shop/a\nUPDATE v1/configmaps shop/b\n\n" + trailers("SEED", "unknown"),
		},
		"by templates": {
			&v1alpha1.CommitPolicy{
				AuthorTemplate:  "{{.Username}} of {{.Cluster}} <{{.Email}}>",
				MessageTemplate: "{{.Author}} ({{.Username}}, {{.ImpersonatedBy}}): {{.Name}}",
				Committer:       &v1alpha1.CommitIdentity{Name: "bot", Email: "bot@example.com"},
			}, attribution.Author{Actor: attribution.Actor{Username: "jane", ImpersonatedBy: "joe"}, Signal: attribution.Admission}, one, false,
			"jane of uid <jane@uid> bot <bot@example.com>",
			"jane of uid (jane, joe): a\n\n" +
				trailers("UPDATE", "admission", "X-ConfigButler-ResourceVersion: 42", "X-ConfigButler-ImpersonatedBy: joe"),
		},
		"of hidden characters": {
			&v1alpha1.CommitPolicy{
				MessageTemplate: "{{.Subject}}\u2067\nb\u200by\t{{.Author}}",
				Committer:       &v1alpha1.CommitIdentity{Name: "b\u202eot", Email: "bot\u200b@example.com"},
			},
			attribution.Author{Actor: attribution.Actor{Username: "e\u202eve\U000e0041", ImpersonatedBy: "日本 é\u2066"}, Signal: attribution.Audit},
			hidden, false,
			`e\u202eve\U000e0041 <e\u202eve\U000e0041@uid> b\u202eot <bot\u200b@example.com>`,
			`[UPDATE] v1/configmaps shop/a\u202egpj.b\u2067` + "\n" + `b\u200by` + "\t" + `e\u202eve\U000e0041` + "\n\n" +
				trailers("UPDATE", "audit", "X-ConfigButler-ResourceVersion: 42", `X-ConfigButler-ImpersonatedBy: 日本 é\u2066`),
		},
		"by a rejected template": {
			&v1alpha1.CommitPolicy{MessageTemplate: "{{.Nothing}}"}, attribution.Author{}, one, false,
			"Slipstream <slipstream@configbutler.ai> Slipstream <slipstream@configbutler.ai>",
			"[UPDATE] v1/configmaps shop/a\n\n" + trailers("UPDATE", "unknown", "X-ConfigButler-ResourceVersion: 42"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{Commit: test.policy}}
			commit := newWording(id, repository).commit(types.NamespacedName{Namespace: "shop", Name: "main"}, test.author, test.changes, test.seed, nil)
			by := commit.Author.Name + " <" + commit.Author.Email + "> " + commit.Committer.Name + " <" + commit.Committer.Email + ">"
			if by != test.by {
				t.Errorf("author = %s, want %s", by, test.by)
			}
			if commit.Message != test.want {
				t.Errorf("message =\n%s\nwant\n%s", commit.Message, test.want)
			}
		})
	}
}
