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
	// eventSource is what Events name as their source.
	eventSource = "slipstream"
	// longestEvent is what the API allows the text of an Event, in bytes.
	longestEvent = 1024
)

// Recorder makes Events. It does not wait.
type Recorder interface {
	// Event makes one about an object, of a type (corev1.EventTypeNormal or Warning), for a reason that programs may read.
	Event(object runtime.Object, eventType, reason, message string)
}

// NewRecorder returns what writes Events to a cluster until ctx ends. What cannot be written is logged and dropped: conditions
// tell it as well. Of each object at most 25 of a type are written in a burst, then one in five minutes.
func NewRecorder(ctx context.Context, cluster kubernetes.Interface) Recorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cluster.CoreV1().Events(metav1.NamespaceAll)})
	return fitting{broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: eventSource})}
}

// fitting makes texts fit, and shows what is not seen in them: they hold names and words of remotes.
type fitting struct{ to Recorder }

func (f fitting) Event(object runtime.Object, eventType, reason, message string) {
	message = printable.Text(message)
	if len(message) > longestEvent {
		message = strings.ToValidUTF8(message[:longestEvent], "")
	}
	f.to.Event(object, eventType, reason, message)
}
