// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NotificationSink sends notifications of what happens in its namespace to a chat channel, to mail addresses or to an HTTP
// server, or records them as Events. A sink in the namespace of the server sends those of all namespaces.
type NotificationSink struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   NotificationSinkSpec
	Status NotificationSinkStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NotificationSinkList is a list of NotificationSinks.
type NotificationSinkList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []NotificationSink
}

// NotificationSinkSpec defines the receiver, what it is notified of, and when. Exactly one of slack, teams, email, webhook
// and event is set.
type NotificationSinkSpec struct {
	Slack        *SlackSink
	Teams        *TeamsSink
	Email        *EmailSink
	Webhook      *WebhookSink
	Event        *EventSink
	Events       []NotificationEvent
	Namespaces   []string
	Subjects     *metav1.LabelSelector
	Resources    []string
	Authors      NotificationAuthors
	MinSeverity  NotificationSeverity
	Content      NotificationContent
	Template     NotificationTemplate
	LinkTemplate string
	DigestWindow *metav1.Duration
	MaxPerMinute *int32
	Windows      []SyncWindow
	Suspend      bool
}

// SlackSink is a channel of Slack.
type SlackSink struct {
	SecretRef      SecretReference
	ProxySecretRef *SecretReference
	Channel        string
	APIURL         string
	CABundle       []byte
}

// TeamsSink is a workflow of Microsoft Teams that posts what a webhook receives ("Send webhook alerts to a channel").
type TeamsSink struct {
	SecretRef      SecretReference
	ProxySecretRef *SecretReference
	CABundle       []byte
}

// EmailSink sends mail through an SMTP server.
type EmailSink struct {
	Host      string
	Port      *int32
	TLS       EmailTLS
	SecretRef *SecretReference
	From      string
	To        []string
	CABundle  []byte
}

// EmailTLS is the use of TLS with an SMTP server.
type EmailTLS string

const (
	// EmailStartTLS requires STARTTLS.
	EmailStartTLS EmailTLS = "StartTLS"
	// EmailImplicitTLS uses TLS from the beginning.
	EmailImplicitTLS EmailTLS = "Implicit"
	// EmailPlain uses no TLS.
	EmailPlain EmailTLS = "None"
)

// WebhookSink sends CloudEvents 1.0 over HTTP in binary mode, signed as Standard Webhooks.
type WebhookSink struct {
	URL            string
	SecretRef      *SecretReference
	ProxySecretRef *SecretReference
	CABundle       []byte
}

// EventSink records Events.
type EventSink struct{}

// NotificationEvent is a kind of notifications.
type NotificationEvent string

const (
	// NotifyPrompted means that changes wait for a decision about an environment.
	NotifyPrompted NotificationEvent = "Prompted"
	// NotifyCompleted means that a sync of an environment has completed.
	NotifyCompleted NotificationEvent = "Completed"
	// NotifyFailed means that a sync has failed, or that a catalog could not take a change.
	NotifyFailed NotificationEvent = "Failed"
	// NotifyConflicted means that fields were changed in an environment and in its catalog.
	NotifyConflicted NotificationEvent = "Conflicted"
	// NotifyDismissed means that a user has dismissed changes.
	NotifyDismissed NotificationEvent = "Dismissed"
	// NotifyChange means that a mirrored object has changed, and a remote has accepted the commit.
	NotifyChange NotificationEvent = "Change"
	// NotifyBypass means that such a change bypassed the tool that manages the object.
	NotifyBypass NotificationEvent = "Bypass"
	// NotifyDestinationFailing means that a GitDestination cannot write.
	NotifyDestinationFailing NotificationEvent = "DestinationFailing"
	// NotifyOwnershipConflict means that the folder of a GitDestination has another owner.
	NotifyOwnershipConflict NotificationEvent = "OwnershipConflict"
	// NotifyCatalogFailing means that an AppCatalog cannot follow its source.
	NotifyCatalogFailing NotificationEvent = "CatalogFailing"
	// NotifyPipelineFailing means that a SyncPipeline cannot watch or send.
	NotifyPipelineFailing NotificationEvent = "PipelineFailing"
)

// NotificationAuthors selects authors by name. In each name, * matches any characters.
type NotificationAuthors struct {
	Include []string
	Exclude []string
}

// NotificationSeverity is the severity of a notification.
type NotificationSeverity string

const (
	// SeverityInfo is for what needs no action: Prompted, Completed, Dismissed, Change, and the end of failures.
	SeverityInfo NotificationSeverity = "Info"
	// SeverityWarning is for Conflicted, Bypass, and Failed while the server retries.
	SeverityWarning NotificationSeverity = "Warning"
	// SeverityError is for DestinationFailing, OwnershipConflict, CatalogFailing, PipelineFailing, and Failed if a user must
	// intervene.
	SeverityError NotificationSeverity = "Error"
)

// NotificationContent is what a notification shows of a changed object.
type NotificationContent string

const (
	// NotificationContentFields shows the paths of changed fields.
	NotificationContentFields NotificationContent = "Fields"
	// NotificationContentDiff also shows values, except those of Secrets and ConfigMaps.
	NotificationContentDiff NotificationContent = "Diff"
	// NotificationContentFull also shows values of ConfigMaps.
	NotificationContentFull NotificationContent = "Full"
)

// NotificationTemplate replaces the title and the text of messages about one subject. Both are Go text/templates, whose
// fields are documented in docs/notifications.md; their work and their output are bounded.
type NotificationTemplate struct {
	Title string
	Text  string
}

// NotificationSinkStatus is the observed state of a sink.
type NotificationSinkStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	EditedBy           *AutomatedBy
	Pending            int64
	Messages           int64
	Notifications      int64
	Rejected           int64
	Failures           int32
	LastDeliveryTime   *metav1.Time
	LastMessage        string
	NextAttemptTime    *metav1.Time
	LastError          string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NotificationTest requests that a test message is sent to the receiver of a NotificationSink, and returns the result and
// what was sent. It is created at the subresource test of the sink and is not stored. A dry run sends nothing.
type NotificationTest struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   NotificationTestSpec
	Status NotificationTestStatus
}

// NotificationTestSpec selects a test message.
type NotificationTestSpec struct {
	Event    NotificationEvent
	Digest   bool
	Template *NotificationTemplate
}

// NotificationTestStatus is the result of a test.
type NotificationTestStatus struct {
	Delivered   bool
	Message     string
	Title       string
	Text        string
	Body        string
	ContentType string
}
