// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const (
	// eventSource is the source component of Events.
	eventSource = "slipstream"
	// maxMessage is the maximum size of an Event's message in the API, in bytes.
	maxMessage = 1024
)

// Recorder emits Events. It does not wait until they are written.
type Recorder interface {
	// Event emits an Event of an object. eventType is corev1.EventTypeNormal or Warning, reason is machine-readable.
	Event(object runtime.Object, eventType, reason, message string)
}

// NewRecorder returns a Recorder that writes Events to a cluster until ctx ends. Events that cannot be written are logged and
// dropped, because conditions report the same. For each object and type, at most 25 are written in a burst, then one in five
// minutes.
func NewRecorder(ctx context.Context, cluster kubernetes.Interface) Recorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cluster.CoreV1().Events(metav1.NamespaceAll)})
	return fitting{broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventSource})}
}

// fitting shortens messages to maxMessage, and escapes characters that are not printable: messages contain names and texts of
// remote systems.
type fitting struct{ to Recorder }

func (f fitting) Event(object runtime.Object, eventType, reason, message string) {
	message = printable.Text(message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	f.to.Event(object, eventType, reason, message)
}
