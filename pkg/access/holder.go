// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Holder is who must have permissions for what goes on while they are not there.
type Holder struct {
	user user.DefaultInfo
	// account is a ServiceAccount as people write it, empty for a user.
	account string
	// takenOver says what to do when they have not.
	takenOver string
}

// Automating is by whose permissions the automatic syncs of an environment are done. A user is known by the groups of when they
// turned them on.
func Automating(e *v1alpha1.Environment) Holder {
	if name := e.Spec.ServiceAccountName; name != "" {
		return accountHolder(e.Namespace, name, "grant it that, or let spec.serviceAccountName name one that may")
	}
	by := e.Status.AutomatedBy
	if by == nil {
		return Holder{takenOver: "to have turned automatic syncs on: turn spec.autoSync off and on again"}
	}
	return Holder{
		user:      user.DefaultInfo{Name: by.Username, UID: string(by.UID), Groups: by.Groups},
		takenOver: "a user who may must turn spec.autoSync off and on again",
	}
}

// Requesting is by whose permissions a sync is done that a user has asked for; nil: it is not known who has.
func Requesting(by *v1alpha1.AutomatedBy) Holder {
	if by == nil {
		return Holder{takenOver: "to have asked for the sync: ask for it again"}
	}
	return Holder{
		user:      user.DefaultInfo{Name: by.Username, UID: string(by.UID), Groups: by.Groups},
		takenOver: "grant that again, or let a user who has that right ask for the sync",
	}
}

// Editing is by whose permissions a catalog takes changes of its source over, if that is known.
func Editing(catalog *v1alpha1.AppCatalog) (who Holder, known bool) {
	by := catalog.Status.EditedBy
	if by == nil {
		return Holder{}, false
	}
	return Holder{
		user:      user.DefaultInfo{Name: by.Username, UID: string(by.UID), Groups: by.Groups},
		takenOver: "nothing is taken over from the source until they may, or until a user who may sets spec.previewOnly to true and back",
	}, true
}

// Sharing is by whose permissions environments copy what the workloads of a catalog refer to, if that is known.
func Sharing(catalog *v1alpha1.AppCatalog) (who Holder, known bool) {
	by := catalog.Status.EditedBy
	if by == nil {
		return Holder{}, false
	}
	return Holder{
		user: user.DefaultInfo{Name: by.Username, UID: string(by.UID), Groups: by.Groups},
		takenOver: fmt.Sprintf("grant that again, or let a user who has that right set spec.previewOnly of AppCatalog %s/%s to true and back",
			catalog.Namespace, catalog.Name),
	}, true
}

// Mirroring is by whose permissions what a rule selects is mirrored, if that is known.
func Mirroring(rule *v1alpha1.WatchRuleStatus) (who Holder, known bool) {
	by := rule.EditedBy
	if by == nil {
		return Holder{}, false
	}
	return Holder{
		user:      user.DefaultInfo{Name: by.Username, UID: string(by.UID), Groups: by.Groups},
		takenOver: "nothing that the rule selects is mirrored until they may, or until a user who may changes its spec",
	}, true
}

// Sending is by whose permissions a pipeline sends what it selects.
func Sending(pipeline *v1alpha1.SyncPipeline) Holder {
	by := pipeline.Status.EditedBy
	if by == nil {
		return Holder{takenOver: "to have had it sent: nothing is, until a user who may sets spec.suspend to true and back"}
	}
	return Holder{
		user:      user.DefaultInfo{Name: by.Username, UID: string(by.UID), Groups: by.Groups},
		takenOver: "nothing is sent until they may, or until a user who may sets spec.suspend to true and back",
	}
}

func accountHolder(namespace, name, takenOver string) Holder {
	info := serviceaccount.UserInfo(namespace, name, "")
	return Holder{
		user:    user.DefaultInfo{Name: info.GetName(), Groups: append(info.GetGroups(), user.AllAuthenticated)},
		account: namespace + "/" + name, takenOver: takenOver,
	}
}

// Unknown says in a sentence that it is not known who the holder is, and what to do; it is empty if that is known.
func (h Holder) Unknown() string {
	if h.user.Name != "" {
		return ""
	}
	return "no user is known " + h.takenOver
}

// String reads like `user "jane"`.
func (h Holder) String() string {
	if h.account != "" {
		return "ServiceAccount " + h.account
	}
	return fmt.Sprintf("user %q", h.user.Name)
}

// fingerprint tells users apart, in little memory however many groups they have.
type fingerprint [sha256.Size]byte

func fingerprintOf(who user.Info) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", append([]string{who.GetName(), who.GetUID()}, who.GetGroups()...)))
}
