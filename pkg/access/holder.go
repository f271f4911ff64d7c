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

// Holder is the user or ServiceAccount with whose permissions the server works while no request is served.
type Holder struct {
	user user.DefaultInfo
	// account is the namespace and name of a ServiceAccount; empty for a user.
	account string
	// remedy is what to do if the holder lacks permissions or is unknown.
	remedy string
}

// Automating returns the holder whose permissions apply to the automatic syncs of an environment. A user has the groups of the request that
// turned automatic syncs on.
func Automating(e *v1alpha1.Environment) Holder {
	if name := e.Spec.ServiceAccountName; name != "" {
		return accountHolder(e.Namespace, name, "grant it that, or let spec.serviceAccountName name one that may")
	}
	by := e.Status.AutomatedBy
	if by == nil {
		return Holder{remedy: "to have turned automatic syncs on: turn spec.autoSync off and on again"}
	}
	return userHolder(by, "a user who may must turn spec.autoSync off and on again")
}

// Requesting returns the holder whose permissions apply to a requested sync. by is the requester; nil if it is unknown.
func Requesting(by *v1alpha1.AutomatedBy) Holder {
	if by == nil {
		return Holder{remedy: "to have asked for the sync: ask for it again"}
	}
	return userHolder(by, "grant that again, or let a user who has that right ask for the sync")
}

// Editing returns the holder whose permissions apply when a catalog takes changes of its source; false if it is unknown.
func Editing(catalog *v1alpha1.AppCatalog) (who Holder, known bool) {
	by := catalog.Status.EditedBy
	if by == nil {
		return Holder{}, false
	}
	remedy := "nothing is taken over from the source until they may, or until a user who may sets spec.previewOnly to true and back"
	return userHolder(by, remedy), true
}

// Sharing returns the holder whose permissions apply when environments copy what the workloads of a catalog refer to; false if it is
// unknown.
func Sharing(catalog *v1alpha1.AppCatalog) (who Holder, known bool) {
	by := catalog.Status.EditedBy
	if by == nil {
		return Holder{}, false
	}
	remedy := fmt.Sprintf("grant that again, or let a user who has that right set spec.previewOnly of AppCatalog %s/%s to true and back",
		catalog.Namespace, catalog.Name)
	return userHolder(by, remedy), true
}

// Mirroring returns the holder whose permissions apply to the mirroring of what a rule selects; false if it is unknown.
func Mirroring(rule *v1alpha1.WatchRuleStatus) (who Holder, known bool) {
	by := rule.EditedBy
	if by == nil {
		return Holder{}, false
	}
	return userHolder(by, "nothing that the rule selects is mirrored until they may, or until a user who may changes its spec"), true
}

// Sending returns the holder whose permissions apply to what a pipeline sends.
func Sending(pipeline *v1alpha1.SyncPipeline) Holder {
	by := pipeline.Status.EditedBy
	if by == nil {
		return Holder{remedy: "to have had it sent: nothing is, until a user who may sets spec.suspend to true and back"}
	}
	return userHolder(by, "nothing is sent until they may, or until a user who may sets spec.suspend to true and back")
}

// Notifying returns the holder whose permissions apply to what a NotificationSink sends.
func Notifying(sink *v1alpha1.NotificationSink) Holder {
	by := sink.Status.EditedBy
	if by == nil {
		return Holder{remedy: "to have had it sent: nothing is, until a user who may sets spec.suspend to true and back"}
	}
	return userHolder(by, "nothing is sent until they may, or until a user who may sets spec.suspend to true and back")
}

// userHolder returns the holder for a user with the groups of the user's request.
func userHolder(by *v1alpha1.AutomatedBy, remedy string) Holder {
	return Holder{user: user.DefaultInfo{Name: by.Username, UID: string(by.UID), Groups: by.Groups}, remedy: remedy}
}

func accountHolder(namespace, name, remedy string) Holder {
	info := serviceaccount.UserInfo(namespace, name, "")
	return Holder{
		user:    user.DefaultInfo{Name: info.GetName(), Groups: append(info.GetGroups(), user.AllAuthenticated)},
		account: namespace + "/" + name, remedy: remedy,
	}
}

// Unknown returns a sentence that says that the holder is unknown and what to do; it is empty if the holder is known.
func (h Holder) Unknown() string {
	if h.user.Name != "" {
		return ""
	}
	return "no user is known " + h.remedy
}

// String returns a text like `user "jane"`.
func (h Holder) String() string {
	if h.account != "" {
		return "ServiceAccount " + h.account
	}
	return fmt.Sprintf("user %q", h.user.Name)
}

// fingerprint identifies a user, and has a fixed size however many groups the user has.
type fingerprint [sha256.Size]byte

func fingerprintOf(who user.Info) fingerprint {
	return sha256.Sum256(fmt.Appendf(nil, "%q", append([]string{who.GetName(), who.GetUID()}, who.GetGroups()...)))
}
