// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func changes() kind[*configbutler.Change, struct{}, configbutler.ChangeSpec] {
	type obj = *configbutler.Change
	return kind[obj, struct{}, configbutler.ChangeSpec]{
		plural: "changes", singular: "change", shortNames: []string{"chg"}, namespaced: true,
		newObject:      func() obj { return &configbutler.Change{} },
		newList:        func() runtime.Object { return &configbutler.ChangeList{} },
		validate:       validation.ValidateChange,
		validateUpdate: validation.ValidateChangeUpdate,
		selectable: map[string]func(obj) string{
			v1alpha1.ChangeObjectKindField:     func(o obj) string { return o.Spec.Object.Kind },
			v1alpha1.ChangeObjectResourceField: func(o obj) string { return o.Spec.Object.Resource },
			v1alpha1.ChangeObjectNameField:     func(o obj) string { return o.Spec.Object.Name },
			v1alpha1.ChangeAuthorField:         changeUser,
			v1alpha1.ChangeOperationField:      func(o obj) string { return string(o.Spec.Operation) },
			v1alpha1.ChangeCommitField:         changeCommit,
			v1alpha1.ChangeBypassField:         func(o obj) string { return strconv.FormatBool(o.Spec.Bypass) },
		},
		nameLast: true,
		columns: []column[obj]{
			agoColumn("When", "Time since the change.", func(o obj) *metav1.Time { return &metav1.Time{Time: o.Spec.Time.Time} }),
			textColumn("Who", "The user who made the change, or in parentheses the field manager if no user is known.", changeAuthor),
			textColumn("What", "The object that changed.", func(o obj) string {
				if o.Spec.Object.Kind == "" {
					return o.Spec.Object.Resource + "/" + o.Spec.Object.Name
				}
				return o.Spec.Object.Kind + "/" + o.Spec.Object.Name
			}),
			textColumn("Did", "What happened to the object.", func(o obj) string { return string(o.Spec.Operation) }),
			textColumn("Fields", "The first field that differs, and the number of others.", func(o obj) string { return fieldsCell(&o.Spec) }),
			textColumn("Commit", "The first commit that contains the change.", func(o obj) string { return abbreviated(changeCommit(o)) }),
			wide(column[obj]{
				name: "Time", description: "The time of the change.", cellType: text,
				cell: func(o obj, _ time.Time) any { return o.Spec.Time.UTC().Format(time.RFC3339) },
			}),
			wide(textColumn("Managed By", "What manages the object; with an exclamation mark if others changed it.", changeManager)),
			wide(textColumn("Reason", "Why the change was made.", func(o obj) string { return o.Spec.Reason })),
			wide(textColumn("Signal", "How the user is known.", func(o obj) string {
				if o.Spec.Author == nil {
					return ""
				}
				return o.Spec.Author.Signal
			})),
		},
	}
}

// changeAuthor returns who made a change, for people.
func changeAuthor(o *configbutler.Change) string {
	if o.Spec.Author == nil && o.Spec.FieldManager != "" {
		return "(" + o.Spec.FieldManager + ")"
	}
	return changeUser(o)
}

// fieldsCell returns the fields of a change for the table.
func fieldsCell(spec *configbutler.ChangeSpec) string {
	text := fieldpath.Summary(spec.Fields, int(spec.MoreFields))
	if text != "" && spec.Object.Resource == "secrets" && spec.Object.APIVersion == "v1" {
		text += " (hidden)"
	}
	return text
}

// changeManager returns what manages the object, for the table.
func changeManager(o *configbutler.Change) string {
	manager := o.Spec.ManagedBy
	if manager == nil {
		return ""
	}
	text := fmt.Sprintf("%s/%s", cmp.Or(manager.Kind, string(manager.Tool)), manager.Name)
	if o.Spec.Bypass {
		text += " !"
	}
	return text
}

// changeUser returns the user who made a change; empty if no user is known.
func changeUser(o *configbutler.Change) string {
	if o.Spec.Author == nil {
		return ""
	}
	return o.Spec.Author.Username
}

// changeCommit returns the hash of the first commit of a change.
func changeCommit(o *configbutler.Change) string {
	if len(o.Spec.Commits) == 0 {
		return ""
	}
	return o.Spec.Commits[0].SHA
}
