// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// slack posts to a channel of Slack: through an incoming webhook, or as a bot, which can also reply in a thread.
type slack struct {
	poster
	spec *v1alpha1.SlackSink
	// api is the address of the method chat.postMessage.
	api *url.URL
}

var _ Receiver = &slack{}

func newSlack(config Config, secrets secretReader, spec *v1alpha1.SlackSink) (*slack, error) {
	api, err := url.Parse(spec.APIURL)
	if err != nil {
		return nil, fmt.Errorf("read apiURL: %w", err)
	}
	poster, err := newPoster(config, secrets, spec.CABundle, spec.ProxySecretRef)
	if err != nil {
		return nil, err
	}
	return &slack{poster, spec, api.JoinPath("chat.postMessage")}, nil
}

// Deliver sends a message as blocks.
func (s *slack) Deliver(ctx context.Context, m *message.Message, thread string) Result {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	secret, err := s.secrets.read(ctx, s.spec.SecretRef.Name)
	if err != nil {
		return failed(err)
	}
	token, err := readToken(secret)
	switch {
	case err != nil:
		return failed(err)
	case token == "" && secret.Value(keyURL) == "":
		return failed(missing(secret, "url and no key token"))
	case token == "":
		return s.webhook(ctx, m, secret)
	case s.spec.Channel == "":
		return failed(outbound.InvalidSecret("the Secret %s has a token, which needs slack.channel; set it, or put url into the Secret",
			secret.Name))
	}
	return s.bot(ctx, m, post{
		url: s.api, header: jsonHeader(), token: token, urlField: "slack.apiURL",
	}, secret.Name, thread)
}

// repairable are the errors of incoming webhooks that a user can repair although their status is 400:
// docs.slack.dev/messaging/sending-messages-using-incoming-webhooks.
var repairable = []string{
	"user_not_found", "channel_not_found", "no_active_hooks", "no_service", "no_team", "team_disabled", "account_inactive",
}

func (s *slack) webhook(ctx context.Context, m *message.Message, secret outbound.Secret) Result {
	body, err := format.Slack(m, "", "")
	if err != nil {
		return unencodable(err)
	}
	request, err := webhookPost(secret, body)
	if err != nil {
		return failed(err)
	}
	response, result := s.send(ctx, request)
	if result.Outcome == Rejected && hasText(response, repairable...) {
		result.Outcome = Retry
	}
	return result
}

// hasText reports whether a response contains one of the texts.
func hasText(response outbound.Response, texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(response.Body, []byte(text)) })
}

// reply is the response of chat.postMessage. Its status is 200 whatever happened.
type reply struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
	TS    string `json:"ts"`
}

// bot posts to the channel. A thread that takes no replies any more is started again.
func (s *slack) bot(ctx context.Context, m *message.Message, request post, secret, thread string) Result {
	parent := s.parentOf(thread)
	got, result := s.postMessage(ctx, m, request, secret, parent)
	if parent != "" && slices.Contains(endedThread, got.Error) {
		parent = ""
		got, result = s.postMessage(ctx, m, request, secret, parent)
	}
	switch {
	case result.Outcome != Delivered || m.Thread == "":
	case parent != "":
		result.Thread = thread
	default:
		result.Thread = s.reference(got.TS)
	}
	return result
}

// endedThread are the errors for threads that take no replies.
var endedThread = []string{"cannot_reply_to_message", "restricted_action_thread_locked"}

// timestamps are the IDs of messages within a channel.
var timestamps = regexp.MustCompile(`^[0-9]{1,20}\.[0-9]{1,20}$`)

// reference returns the reference of a thread: the channel and the ID of its first message, which means nothing in another channel.
func (s *slack) reference(ts string) string {
	if !timestamps.MatchString(ts) {
		return ""
	}
	return s.spec.Channel + "/" + ts
}

// parentOf returns the ID of the first message of a thread, or an empty string if it is in another channel.
func (s *slack) parentOf(thread string) string {
	channel, ts, _ := strings.Cut(thread, "/")
	if channel != s.spec.Channel || !timestamps.MatchString(ts) {
		return ""
	}
	return ts
}

// postMessage calls chat.postMessage.
func (s *slack) postMessage(ctx context.Context, m *message.Message, request post, secret, parent string) (reply, Result) {
	var err error
	if request.body, err = format.Slack(m, s.spec.Channel, parent); err != nil {
		return reply{}, unencodable(err)
	}
	response, result := s.send(ctx, request)
	if result.Outcome != Delivered {
		return reply{}, result
	}
	var got reply
	switch err := json.Unmarshal(response.Body, &got); {
	case err != nil:
		result.Outcome = Retry
		result.Message = fmt.Sprintf("%s does not respond as the API of Slack; is slack.apiURL right?", request.url.Host)
	case !got.OK:
		result.Outcome = slackOutcome(got.Error)
		result.RetryAfter = outbound.RetryAfter(response.Header, s.clock.Now())
		result.Message = show(outbound.NewRedactor([]string{request.token}), "Slack: "+cmp.Or(got.Error, "no error given")+s.hint(got.Error, secret))
	default:
		result.Message = "posted to " + s.spec.Channel
	}
	return got, result
}

// ofMessage are the errors of chat.postMessage about the content of a message. Those about the channel, the token or the workspace can be
// repaired: docs.slack.dev/reference/methods/chat.postMessage.
var ofMessage = []string{
	"msg_too_long", "msg_blocks_too_long", "no_text", "invalid_blocks", "invalid_blocks_format", "too_many_attachments",
	"attachment_payload_limit_exceeded", "invalid_json", "json_not_object", "invalid_arguments", "markdown_text_conflict",
}

func slackOutcome(code string) Outcome {
	if slices.Contains(ofMessage, code) {
		return Rejected
	}
	return Retry
}

// hint says how to repair what an error of chat.postMessage is about.
func (s *slack) hint(code, secret string) string {
	switch code {
	case "not_in_channel":
		return "; invite the bot to the channel " + s.spec.Channel
	case "channel_not_found":
		return "; slack.channel names no channel that the bot can see: invite it, or correct the channel"
	case "is_archived":
		return "; the channel is archived: name another one"
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive":
		return "; replace the token in the Secret " + secret
	case "missing_scope", "not_allowed_token_type", "no_permission":
		return "; the token in the Secret " + secret + " needs the scope chat:write"
	}
	return ""
}
