// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:method=Test,verb=create,subresource=test,input=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.NotificationTest,result=github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1.NotificationTest
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NotificationSink sends notifications of what happens in its namespace to a chat channel, to mail addresses or to an HTTP
// server, or records them as Events. A sink in the namespace of the server sends those of all namespaces.
type NotificationSink struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. The name has at most 63 characters and no dots.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the desired state.
	Spec NotificationSinkSpec `json:"spec"`
	// status is the observed state. Only the server writes it.
	// +optional
	Status NotificationSinkStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NotificationSinkList is a list of NotificationSinks.
type NotificationSinkList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the objects.
	Items []NotificationSink `json:"items"`
}

// NotificationSinkSpec defines the receiver, what it is notified of, and when. Exactly one of slack, teams, email, webhook
// and event is set.
type NotificationSinkSpec struct {
	// slack posts to a channel of Slack.
	// +optional
	Slack *SlackSink `json:"slack,omitempty"`
	// teams posts to a workflow of Microsoft Teams.
	// +optional
	Teams *TeamsSink `json:"teams,omitempty"`
	// email sends mail.
	// +optional
	Email *EmailSink `json:"email,omitempty"`
	// webhook sends CloudEvents to an HTTP server.
	// +optional
	Webhook *WebhookSink `json:"webhook,omitempty"`
	// event records an Event of Kubernetes for the subject of each notification, in the subject's namespace.
	// +optional
	Event *EventSink `json:"event,omitempty"`
	// events are the kinds of notifications. The end of a failure or conflict is notified to the sinks that were notified of
	// it. Defaults to all except Completed, Dismissed and Change. At least 1.
	// +optional
	// +listType=set
	// +default=["Prompted","Failed","Conflicted","Bypass","DestinationFailing","OwnershipConflict","CatalogFailing","PipelineFailing"]
	Events []NotificationEvent `json:"events,omitempty"`
	// namespaces are those of the subjects, and * matches any characters, as in team-*. Only a sink in the namespace of the
	// server has them; there, empty means all namespaces, and what is cluster-scoped. At most 100.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// subjects selects environments, catalogs, GitDestinations and pipelines by their labels; a Change is selected by the
	// labels of a GitDestination that mirrors its object. Absent means all. It has at most 500 labels, expressions and
	// values.
	// +optional
	Subjects *metav1.LabelSelector `json:"subjects,omitempty"`
	// resources are the types of the objects of Changes: plurals such as deployments, plural.group such as
	// deployments.apps, or * for all. Empty means all. At most 100.
	// +optional
	// +listType=set
	Resources []string `json:"resources,omitempty"`
	// authors selects Changes by the user who made them, or the field manager if no user is known.
	// +optional
	Authors NotificationAuthors `json:"authors,omitempty"`
	// minSeverity is Info, Warning or Error. Notifications of a lower severity are not sent. Defaults to Info.
	// +optional
	// +default=ref(SeverityInfo)
	MinSeverity NotificationSeverity `json:"minSeverity,omitempty"`
	// content is what a notification shows of a changed object: Fields (the paths of the changed fields), Diff (also values
	// before and after, except those of Secrets and ConfigMaps) or Full (also values of ConfigMaps). Values of Secrets are never
	// sent. Defaults to Diff.
	// +optional
	// +default=ref(NotificationContentDiff)
	Content NotificationContent `json:"content,omitempty"`
	// template replaces the title and the text of messages about one subject.
	// +optional
	Template NotificationTemplate `json:"template,omitempty"`
	// linkTemplate is the URL that a notification links to, such as the page of a team: http or https, with the placeholders
	// {kind}, {namespace} and {name} of the subject, which are escaped. Empty means no link. At most 2048 bytes.
	// +optional
	LinkTemplate string `json:"linkTemplate,omitempty"`
	// digestWindow is how long notifications are collected, from the first one on, before they are sent together in one
	// message, as a duration such as 30s. 0s to 24h; with 0s, they are still collected while maxPerMinute is reached, or a
	// message waits for a retry. Defaults to 30s.
	// +optional
	// +default="30s"
	DigestWindow *metav1.Duration `json:"digestWindow,omitempty"`
	// maxPerMinute is the maximum number of messages within a minute, 1 to 60. Beyond it, notifications are collected.
	// Defaults to 10.
	// +optional
	// +default=10
	MaxPerMinute *int32 `json:"maxPerMinute,omitempty"`
	// windows define when messages may be sent: while a window of kind Allow is open, or at any time if there is none, but
	// never while a window of kind Deny is open, as during maintenance. Notifications are collected meanwhile. At most 50.
	// +optional
	// +listType=map
	// +listMapKey=name
	Windows []SyncWindow `json:"windows,omitempty"`
	// suspend stops the collection and sending of notifications. What happens meanwhile is not sent later, except what still
	// needs a decision or fails then. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// SlackSink is a channel of Slack.
type SlackSink struct {
	// secretRef names the Secret. Its key is url (the URL of an incoming webhook) or token (the token of a bot with the
	// scope chat:write, which also needs channel). With a token, all messages about one subject are in one thread.
	SecretRef SecretReference `json:"secretRef"`
	// channel is the ID of the channel, such as C024BE91L, or its name. Only for a token.
	// +optional
	Channel string `json:"channel,omitempty"`
	// apiURL is the URL of Slack's API, for a token. Defaults to https://slack.com/api.
	// +optional
	// +default="https://slack.com/api"
	APIURL string `json:"apiURL,omitempty"`
	// proxySecretRef names the Secret with the proxy to the server, in this namespace: address, such as
	// http://proxy.example.com:3128, and username and password if the proxy wants them. Absent means the proxy that the
	// environment of this server names for the host, if any.
	// +optional
	ProxySecretRef *SecretReference `json:"proxySecretRef,omitempty"`
	// caBundle has the certificates of the certificate authorities of the server, in PEM, as base64. Empty means those that
	// the system trusts. At most 1 MiB.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// TeamsSink is a workflow of Microsoft Teams that posts what a webhook receives ("Send webhook alerts to a channel").
type TeamsSink struct {
	// secretRef names the Secret. Its key url has the URL of the workflow.
	SecretRef SecretReference `json:"secretRef"`
	// proxySecretRef names the Secret with the proxy to the server, in this namespace: address, such as
	// http://proxy.example.com:3128, and username and password if the proxy wants them. Absent means the proxy that the
	// environment of this server names for the host, if any.
	// +optional
	ProxySecretRef *SecretReference `json:"proxySecretRef,omitempty"`
	// caBundle has the certificates of the certificate authorities of the server, in PEM, as base64. Empty means those that
	// the system trusts. At most 1 MiB.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// EmailSink sends mail through an SMTP server.
type EmailSink struct {
	// host is the name or address of the SMTP server.
	Host string `json:"host"`
	// port of the server, 1 to 65535. Defaults to 587, or to 465 if tls is Implicit.
	// +optional
	Port *int32 `json:"port,omitempty"`
	// tls is StartTLS (required of the server), Implicit (TLS from the beginning) or None, which sends everything in plain
	// text and no credentials. Defaults to StartTLS.
	// +optional
	// +default=ref(EmailStartTLS)
	TLS EmailTLS `json:"tls,omitempty"`
	// secretRef names the Secret with the keys username and password. Absent means no authentication. It must be absent if
	// tls is None.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// from is the sender, such as Slipstream <slipstream@example.com>.
	From string `json:"from"`
	// to are the recipients, 1 to 50.
	// +listType=set
	To []string `json:"to"`
	// caBundle has the certificates of the certificate authorities of the server, in PEM, as base64. Empty means those that
	// the system trusts. At most 1 MiB.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// EmailTLS is the use of TLS with an SMTP server.
//
// +enum
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
	// url is the URL of the server: http or https. Empty means the key url of the Secret.
	// +optional
	URL string `json:"url,omitempty"`
	// secretRef names the Secret. Its keys are secret (signs each message as Standard Webhooks; whsec_ and 24 to 64 bytes in
	// base64), token (sent as a bearer token) and url, all optional. Without it, messages are not signed.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
	// proxySecretRef names the Secret with the proxy to the server, in this namespace: address, such as
	// http://proxy.example.com:3128, and username and password if the proxy wants them. Absent means the proxy that the
	// environment of this server names for the host, if any.
	// +optional
	ProxySecretRef *SecretReference `json:"proxySecretRef,omitempty"`
	// caBundle has the certificates of the certificate authorities of the server, in PEM, as base64. Empty means those that
	// the system trusts. At most 1 MiB.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// EventSink records Events.
type EventSink struct{}

// NotificationEvent is a kind of notifications.
//
// +enum
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
	// include are the selected names, such as jane@example.com or *@example.com. Empty means all. At most 100.
	// +optional
	// +listType=set
	Include []string `json:"include,omitempty"`
	// exclude are names that are left out even if they are included, such as system:*. At most 100.
	// +optional
	// +listType=set
	Exclude []string `json:"exclude,omitempty"`
}

// NotificationSeverity is the severity of a notification.
//
// +enum
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
//
// +enum
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
	// title replaces the title, which is the subject of a mail. At most 4096 bytes.
	// +optional
	Title string `json:"title,omitempty"`
	// text replaces the text below it. At most 4096 bytes.
	// +optional
	Text string `json:"text,omitempty"`
}

// NotificationSinkStatus is the observed state of a sink.
type NotificationSinkStatus struct {
	// observedGeneration is the metadata.generation that this status reflects.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready reports whether notifications are collected and the receiver can be used; Delivering, whether the last
	// message was delivered.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// editedBy is the user who created the sink or last changed its spec so that more is sent, or elsewhere. Only what that user
	// may read is sent. Absent if the user is not known: then nothing is sent.
	// +optional
	EditedBy *AutomatedBy `json:"editedBy,omitempty"`
	// pending is the number of notifications that have not been delivered yet.
	// +optional
	Pending int64 `json:"pending,omitempty"`
	// messages is the number of delivered messages.
	// +optional
	Messages int64 `json:"messages,omitempty"`
	// notifications is the number of delivered notifications. A message may have many.
	// +optional
	Notifications int64 `json:"notifications,omitempty"`
	// rejected is the number of messages that the receiver rejected and that are not sent again.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// failures is the number of attempts that have failed since the last delivered message.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// lastDeliveryTime is when the last message was delivered.
	// +optional
	LastDeliveryTime *metav1.Time `json:"lastDeliveryTime,omitempty"`
	// lastMessage is the title of that message, at most 256 bytes.
	// +optional
	LastMessage string `json:"lastMessage,omitempty"`
	// nextAttemptTime is when the next message is sent. Absent if nothing is pending.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
	// lastError is why the last attempt failed. Empty if it succeeded.
	// +optional
	LastError string `json:"lastError,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NotificationTest requests that a test message is sent to the receiver of a NotificationSink, and returns the result and
// what was sent. It is created at the subresource test of the sink and is not stored. A dry run sends nothing.
type NotificationTest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata. Its name, if given, must be that of the sink.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec selects the message.
	// +optional
	Spec NotificationTestSpec `json:"spec,omitempty"`
	// status is the result.
	// +optional
	Status NotificationTestStatus `json:"status,omitempty"`
}

// NotificationTestSpec selects a test message.
type NotificationTestSpec struct {
	// event is the kind of the notification in the message, which has made-up content. Defaults to Prompted.
	// +optional
	// +default=ref(NotifyPrompted)
	Event NotificationEvent `json:"event,omitempty"`
	// digest sends one of each kind in one message instead. Defaults to false.
	// +optional
	Digest bool `json:"digest,omitempty"`
	// template replaces the template of the sink, so that one can be tried before it is stored.
	// +optional
	Template *NotificationTemplate `json:"template,omitempty"`
}

// NotificationTestStatus is the result of a test.
type NotificationTestStatus struct {
	// delivered means that the receiver has accepted the message.
	// +optional
	Delivered bool `json:"delivered,omitempty"`
	// message describes the result: what the receiver answered, or why nothing was sent.
	// +optional
	Message string `json:"message,omitempty"`
	// title is the title of the message.
	// +optional
	Title string `json:"title,omitempty"`
	// text is the message as plain text.
	// +optional
	Text string `json:"text,omitempty"`
	// body is what is sent: JSON for Slack, Teams and webhooks, the HTML part of a mail, and the message of an Event.
	// +optional
	Body string `json:"body,omitempty"`
	// contentType is the media type of body, such as application/json.
	// +optional
	ContentType string `json:"contentType,omitempty"`
}

// NotificationEvents returns all kinds of notifications.
func NotificationEvents() []NotificationEvent {
	return []NotificationEvent{
		NotifyPrompted, NotifyCompleted, NotifyFailed, NotifyConflicted, NotifyDismissed, NotifyChange, NotifyBypass,
		NotifyDestinationFailing, NotifyOwnershipConflict, NotifyCatalogFailing, NotifyPipelineFailing,
	}
}
