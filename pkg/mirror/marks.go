// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/mirror/managedby"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// maxReason is the number of bytes that are kept of the reason of a change.
const maxReason = 512

// marking reads the marks of objects.
type marking struct {
	// hash returns a message authentication code; nil if there is no key. Then the changed keys of Secrets are not known.
	hash func([]byte) string
}

// of returns the marks of an object.
func (m marking) of(t outbox.Object, object *unstructured.Unstructured) outbox.Marks {
	marks := outbox.Marks{ManagedBy: managedby.Of(object), Manager: managedby.LastManager(object)}
	annotations := object.GetAnnotations()
	reason := annotations[v1alpha1.AnnotationReason]
	if !isSecret(t) { // Only the first is written for others to read: the second can quote what the Secret has.
		reason = cmp.Or(reason, annotations[v1alpha1.AnnotationChangeCause])
	}
	marks.Reason = shortened(printable.Line(reason), maxReason)
	if isSecret(t) && m.hash != nil {
		marks.Values = m.values(object)
	}
	return marks
}

// values returns the message authentication codes of the values of a Secret.
func (m marking) values(object *unstructured.Unstructured) map[string]string {
	values := map[string]string{}
	for field, content := range object.Object {
		entries, isMap := content.(map[string]any)
		switch {
		case field == "apiVersion", field == "kind", field == "metadata":
		case isMap && (field == "data" || field == "stringData"):
			for key, value := range entries {
				m.add(values, fieldpath.Path{{Field: field}, {Field: key}}, object, value)
			}
		default:
			m.add(values, fieldpath.Path{{Field: field}}, object, content)
		}
	}
	for field, entries := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		for key, value := range entries {
			m.add(values, fieldpath.Path{{Field: "metadata"}, {Field: field}, {Field: key}}, object, value)
		}
	}
	return values
}

// add adds the code of a value. It depends on the object and the path, so that equal values do not look equal.
func (m marking) add(values map[string]string, path fieldpath.Path, object *unstructured.Unstructured, value any) {
	const length = 16
	code := m.hash(fmt.Appendf(nil, "secret value\n%s\n%s\n%s\n%v", object.GetNamespace(), object.GetName(), path, value))
	values[path.String()] = code[:min(length, len(code))]
}

// shortened returns the beginning of a text, at most some bytes long.
func shortened(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "")
}

// bypasses reports changes that bypass what manages an object.
type bypasses struct {
	// event records an Event of an object.
	event func(object *unstructured.Unstructured, message string)
	// limiter bounds the Events: a person may delete thousands of objects at once.
	limiter flowcontrol.RateLimiter
}

// Events are written for up to bypassBurst bypasses at once, and then one a second.
const bypassBurst = 100

func newBypasses(event func(object *unstructured.Unstructured, message string)) *bypasses {
	return &bypasses{event: event, limiter: flowcontrol.NewTokenBucketRateLimiter(1, bypassBurst)}
}

// isBypass reports whether a change bypasses what manages the object.
func isBypass(change outbox.Change) bool {
	manager := change.Marks.Manager
	if change.Operation == v1alpha1.OperationDelete {
		manager = "" // That of an earlier change.
	}
	return managedby.Bypass(change.Marks.ManagedBy, change.Author, manager)
}

// report counts a bypass and records an Event.
func (b *bypasses) report(object *unstructured.Unstructured, change outbox.Change) {
	manager := change.Marks.ManagedBy
	bypassed.WithLabelValues(string(manager.Tool)).Inc()
	if b.limiter.TryAccept() {
		b.event(object, bypassMessage(change.Operation, change.Author, manager))
	}
}

func bypassMessage(operation v1alpha1.Operation, author attribution.Author, manager *v1alpha1.ChangeManager) string {
	did := "changed"
	switch operation {
	case v1alpha1.OperationCreate:
		did = "created"
	case v1alpha1.OperationDelete:
		did = "deleted"
	}
	return fmt.Sprintf("%s %s this object, which %s manages", printable.Line(author.Username), did, describeManager(manager))
}

// describeManager returns a text such as "Kustomization flux-system/shop (Flux)".
func describeManager(manager *v1alpha1.ChangeManager) string {
	name := printable.Line(manager.Name)
	if manager.Namespace != "" {
		name = printable.Line(manager.Namespace) + "/" + name
	}
	if manager.Kind == "" {
		return fmt.Sprintf("release %s (%s)", name, manager.Tool)
	}
	return fmt.Sprintf("%s %s (%s)", printable.Line(manager.Kind), name, manager.Tool)
}
