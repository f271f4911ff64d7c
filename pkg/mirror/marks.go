// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/internal/managedby"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

const (
	// maxReason is the number of bytes that are kept of the reason of a change.
	maxReason = 512
	// maxName is the number of bytes that are kept of the name of a manager. Names of objects are not longer, but annotations may be.
	maxName = 253
)

// marking reads the marks of objects.
type marking struct {
	// hash returns a message authentication code; nil if there is no key. Then the changed keys of Secrets are not known.
	hash func([]byte) string
}

// of returns the marks of an object.
func (m marking) of(t outbox.Object, object *unstructured.Unstructured) outbox.Marks {
	marks := outbox.Marks{ManagedBy: managedby.Of(object), Manager: shortened(managedby.LastManager(object), maxName)}
	if manager := marks.ManagedBy; manager != nil {
		manager.Name, manager.Namespace = shortened(manager.Name, maxName), shortened(manager.Namespace, maxName)
		manager.Kind = shortened(manager.Kind, maxName)
	}
	marks.Reason = reasonOfChange(t, object)
	if isSecret(t) && m.hash != nil {
		marks.Values = m.values(object)
	}
	return marks
}

// reasonOfChange returns the reason that an object gives for its last change. An annotation that was set before the last write is none.
func reasonOfChange(t outbox.Object, object *unstructured.Unstructured) string {
	annotations := object.GetAnnotations()
	for _, key := range [...]string{v1alpha1.AnnotationReason, v1alpha1.AnnotationChangeCause} {
		reason := annotations[key]
		switch {
		case reason == "":
		case key == v1alpha1.AnnotationChangeCause && isSecret(t):
			return "" // Only the other is written for others to read: this one can quote what the Secret has.
		case managedby.SetByLastWrite(object, key):
			return shortened(printable.Line(reason), maxReason)
		}
	}
	return ""
}

// maxValues is the number of values of a Secret whose changes are known. Those of larger Secrets are not, because the codes would take
// more space than the Secret.
const maxValues = 200

// values returns the message authentication codes of the values that a file has of a Secret; nil if there is no file.
func (m marking) values(object *unstructured.Unstructured) map[string]string {
	values := map[string]string{}
	object, err := manifest.Canonical(object)
	if err != nil {
		return nil
	}
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
	if len(values) > maxValues {
		return nil
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
	return managedby.Bypass(change.Marks.ManagedBy, change.Author, change.Marks.Manager)
}

// report counts a bypass that a watch has delivered, and records an Event. Secrets have none, and neither have objects without a namespace,
// whose Events would be in the namespace default: who may read Events may not know their names.
func (b *bypasses) report(delivered watch.Change, change outbox.Change) {
	manager := change.Marks.ManagedBy
	bypassed.WithLabelValues(string(manager.Tool)).Inc()
	if object := change.Object; object.Namespace != "" && !isSecret(object) && b.limiter.TryAccept() {
		b.event(delivered.Object, bypassMessage(delivered.Operation, change.Author, manager))
	}
}

func bypassMessage(operation watch.Operation, author attribution.Author, manager *v1alpha1.ChangeManager) string {
	did := "changed"
	switch operation {
	case watch.Create:
		did = "created"
	case watch.Delete:
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
