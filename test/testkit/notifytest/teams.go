// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifytest

import (
	"fmt"
	"net/http"
	"testing"
)

// maxTeams is the limit of messages that workflows post, in bytes: learn.microsoft.com/connectors/teams.
const maxTeams = 28 << 10

// TeamsPath is the path of the workflow, whose signature must stay secret.
const TeamsPath = "/workflows/0123456789abcdef/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sig=s1gnatureOfTheWorkflow"

// Teams starts a workflow that posts what its webhook receives.
func Teams(t testing.TB) *Receiver {
	return start(t, TeamsPath, func(request Request) (Answer, []string) {
		if request.Path != TeamsPath {
			return Answer{Status: http.StatusUnauthorized, Body: `{"error":{"code":"DirectApiAuthorizationRequired"}}`}, []string{"unknown path"}
		}
		if faults := checkTeams(request); len(faults) > 0 {
			return Answer{Status: http.StatusBadRequest, Body: `{"error":{"code":"TriggerInputSchemaMismatch"}}`}, faults
		}
		return Answer{Status: http.StatusAccepted}, nil
	})
}

// checkTeams checks a message: the documented fields of those elements of Adaptive Cards 1.4 that show text.
func checkTeams(request Request) []string {
	message, faults := decode(request)
	if len(faults) > 0 {
		return faults
	}
	attachment := func(path string, value any) []string {
		object, ok := value.(map[string]any)
		if !ok {
			return []string{path + " must be an object"}
		}
		return kind{required: []string{"contentType", "content"}, fields: map[string]rule{
			"contentType": oneOf("application/vnd.microsoft.card.adaptive"), "contentUrl": oneOf(nil), "content": of(teamsCard),
		}}.check(path, object)
	}
	faults = of(map[string]kind{"message": {required: []string{"attachments"}, fields: map[string]rule{
		"attachments": list(1, attachment), "summary": text(1000),
	}}})("message", message)
	if len(request.Body) > maxTeams {
		faults = append(faults, fmt.Sprintf("the message has %d bytes, must be at most %d", len(request.Body), maxTeams))
	}
	return faults
}

// teamsElements are the kinds of elements. They contain each other.
func teamsElements(path string, value any) []string {
	size := oneOf("Small", "Default", "Medium", "Large", "ExtraLarge")
	weight := oneOf("Lighter", "Default", "Bolder")
	color := oneOf("Default", "Dark", "Light", "Accent", "Good", "Warning", "Attention")
	spacing := oneOf("None", "Small", "Default", "Medium", "Large", "ExtraLarge", "Padding")
	font := oneOf("Default", "Monospace")
	flag := oneOf(true, false)
	items := list(500, teamsElements)
	run := of(map[string]kind{"TextRun": {required: []string{"text"}, fields: map[string]rule{
		"text": text(maxTeams), "size": size, "weight": weight, "color": color, "fontType": font, "isSubtle": flag, "italic": flag,
		"selectAction": of(teamsActions),
	}}})
	column := of(map[string]kind{"Column": {required: []string{"items"}, fields: map[string]rule{"items": items, "width": anything}}})
	return of(map[string]kind{
		"TextBlock": {required: []string{"text"}, fields: map[string]rule{
			"text": text(maxTeams), "size": size, "weight": weight, "color": color, "fontType": font, "isSubtle": flag, "wrap": flag,
			"spacing": spacing, "separator": flag,
		}},
		"RichTextBlock": {required: []string{"inlines"}, fields: map[string]rule{"inlines": list(500, run), "spacing": spacing, "separator": flag}},
		"Container": {required: []string{"items"}, fields: map[string]rule{
			"items": items, "style": oneOf("default", "emphasis", "good", "attention", "warning", "accent"), "bleed": flag, "spacing": spacing,
			"separator": flag,
		}},
		"ColumnSet": {required: []string{"columns"}, fields: map[string]rule{"columns": list(10, column), "spacing": spacing, "separator": flag}},
	})(path, value)
}

var teamsActions = map[string]kind{
	"Action.OpenUrl": {required: []string{"url"}, fields: map[string]rule{"url": link(maxTeams), "title": text(200)}},
}

var teamsCard = map[string]kind{"AdaptiveCard": {required: []string{"version", "body"}, fields: map[string]rule{
	"$schema": oneOf("http://adaptivecards.io/schemas/adaptive-card.json"), "version": oneOf("1.2", "1.3", "1.4", "1.5"),
	"body": list(500, teamsElements), "actions": list(6, of(teamsActions)), "fallbackText": text(maxTeams), "msteams": anything,
}}}
