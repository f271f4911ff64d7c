// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitmessage_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/commitmessage"
)

func parseAuthor(text string) error {
	_, err := commitmessage.ParseAuthor(text)
	return err
}

func parseMessage(text string) error {
	_, err := commitmessage.ParseMessage(text)
	return err
}

func TestTemplatesAreChecked(t *testing.T) {
	author, message := parseAuthor, parseMessage
	for name, test := range map[string]struct {
		parse func(string) error
		text  string
		says  string
	}{
		"no author template":        {author, "", ""},
		"an author":                 {author, `{{.Name}} <{{.Email}}>`, ""},
		"an author with a fallback": {author, `{{or .Name .Username}} <{{with .Email}}{{.}}{{else}}{{.Username}}@{{.Cluster}}{{end}}>`, ""},
		"an author's groups":        {author, `{{range .Groups}}{{.}} {{end}}{{if .Groups}}{{index .Groups 0}}{{end}} <>`, ""},
		"an author over lines":      {author, "{{if .Name}}\n{{.Name}}{{else}}\nx{{end}} <x>\n", ""},
		"a message":                 {message, "{{.Subject}}\n{{range .Changes}}{{.Operation}} {{.Namespace}}/{{.Name}}\n{{end}}", ""},
		"a message with all fields": {
			message, "{{.Subject}}{{.Summary}}{{.Operation}}{{.Count}}{{.Created}}{{.Updated}}{{.Deleted}}{{.Group}}{{.Version}}{{.Resource}}" +
				"{{.Namespace}}{{.Name}}{{.Destination}}{{.Cluster}}{{.Username}}{{.Author}}{{.Attribution}}{{.ImpersonatedBy}}", "",
		},
		"a message with variables":         {message, `{{range $i, $c := $.Changes}}{{$i}} {{$c.Name}} {{$.Author}}{{else}}none{{end}}`, ""},
		"a message about the first change": {message, `{{(index .Changes 0).Name}}{{with index .Changes 0}}{{.Name}}{{end}}`, ""},
		"a message with conditions":        {message, `{{if and (eq .Operation "DELETE") (gt .Count 1)}}{{slice .Author 0 1}}{{end}}`, ""},
		"no template":                      {author, `{{.Name`, "line 1: unclosed action"},
		"an unknown function":              {author, "a\n{{upper .Name}}", `line 2: function "upper" not defined`},
		"an unknown field":                 {author, "\n\n{{.Login}}", "line 3: must not use .Login; known here are .Cluster, .Email"},
		"a field of the other template":    {author, `{{.Subject}}`, "known here are"},
		"a field of a field":               {author, `{{.Name.First}}`, "must not use .Name.First"},
		"an author without an address":     {author, `{{.Name}}`, `one line of the form "Name <email>"`},
		"an author of two lines":           {author, "{{.Name}}\nx <{{.Email}}>", `one line of the form "Name <email>"`},
		"an author with two addresses":     {author, "{{.Name}} <a> <b>", `one line of the form "Name <email>"`},
		"an author with something after":   {author, "{{.Name}} <a> b", `one line of the form "Name <email>"`},
		"an author that needs a name": {
			author, "{{slice .Name 0 1}} <a>", "for a user of whom only the username is known: line 1: at <slice .Name 0 1>",
		},
		"a type that does not fit": {message, `{{gt .Subject 1}}`, "incompatible types for comparison"},
		"an index that is not always there": {
			message, `{{index .Changes 1}}`, "for one change: line 1: at <index .Changes 1>: error calling index: index out of range: 1",
		},
		"a field hidden from the check": {
			message, "{{with index .Changes 0}}\n{{.Kind}}{{end}}", "line 2: at <.Kind>: can't evaluate field Kind",
		},
		"a field of an item that is none": {message, `{{range .Changes}}{{.Subject}}{{end}}`, ".Subject; known here are .Group"},
		"an unknown field of the root":    {message, `{{range .Changes}}{{$.Kind}}{{end}}`, ".Kind; known here are .Attribution"},
		"a field hidden in a condition":   {message, `{{if eq 1 1}}{{else if (len .Nothing)}}{{end}}`, ".Nothing"},
		"printing":                        {message, `{{with printf "%s%s" . .}}{{end}}`, "must not use the function printf"},
		"printing behind a pipe":          {message, `{{.Subject | html}}`, "must not use the function html"},
		"calling":                         {message, `{{call .Subject}}`, "must not use the function call"},
		"a method":                        {message, `{{range .Changes}}{{.String}}{{end}}`, "must not use .String"},
		"a loop in a loop":                {message, `{{range .Changes}}{{range $.Changes}}{{end}}{{end}}`, "not inside another range"},
		"a loop that counts":              {message, `{{range 1000000000}}{{end}}`, "a list by its name"},
		"a loop over a string":            {message, `{{range .Subject}}{{end}}`, "a list by its name"},
		"a loop over what something is":   {message, `{{with .Changes}}{{range .}}{{end}}{{end}}`, "a list by its name"},
		"a template in itself":            {message, `{{define "x"}}{{template "x"}}{{end}}{{template "x"}}`, "must not use define or block"},
		"a block":                         {message, `{{block "x" .}}{{end}}`, "must not use define or block"},
		"a template that is itself":       {message, `{{template "template"}}`, "must not use template"},
		"too long":                        {message, strings.Repeat("a", 4097), "at most 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.parse(test.text)
			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("error = %v, want %q", err, test.says)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	jane := commitmessage.User{Username: "jane", Name: "Jane Doe", Email: "jane@example.com", Groups: []string{"dev", "ops"}, Cluster: "uid"}
	account := commitmessage.User{Username: "system:serviceaccount:shop:web", Cluster: "uid"}
	forger := commitmessage.User{Username: "eve <root@example.com>\nX: y", Cluster: "uid"}
	endless := commitmessage.User{Username: strings.Repeat("ü", 1000), Cluster: "uid"}
	const withGroup = `{{.Username}}{{if .Groups}} ({{index .Groups 0}}){{end}} <{{.Email}}>`
	for name, test := range map[string]struct {
		template string
		user     commitmessage.User
		want     string
	}{
		"by itself":                {"", jane, "Jane Doe <jane@example.com>"},
		"username only":            {"", commitmessage.User{Username: "jane", Cluster: "uid"}, "jane <jane@uid>"},
		"service account":          {"", account, "shop/web <shop/web@uid>"},
		"by template":              {`{{.Username}} <{{.Username}}@example.com>`, jane, "jane <jane@example.com>"},
		"parts left empty":         {`{{.Name}} <{{.Email}}>`, account, "shop/web <shop/web@uid>"},
		"lists":                    {`{{.Username}}{{range .Groups}} {{.}}{{end}} <{{.Cluster}}>`, jane, "jane dev ops <uid>"},
		"a template that fails":    {`{{.Name}} <{{slice .Username 0 4}}>`, commitmessage.User{Username: "x", Cluster: "uid"}, "x <x@uid>"},
		"names with lines":         {"", forger, "eve root@example.com\\u000aX: y <eve root@example.com\\u000aX: y@uid>"},
		"names with lines, by one": {`{{.Username}} <{{.Cluster}}>`, forger, "eve root@example.com\\u000aX: y <uid>"},
		"a name without an end":    {`{{.Username}} <x>`, endless, strings.Repeat("ü", 128) + " <x>"},
		"invalid bytes":            {"", commitmessage.User{Username: "a\xffb\x00", Cluster: "uid"}, "a\uFFFDb\\u0000 <a\uFFFDb\\u0000@uid>"},
		"direction of text":        {"", commitmessage.User{Username: "a\u202eb\u2066", Cluster: "uid"}, `a\u202eb\u2066 <a\u202eb\u2066@uid>`},
		"address of managers": {
			"", commitmessage.User{Username: "jane", Email: "Field-Manager@slipstream.invalid", Cluster: "uid"}, "jane <jane@uid>",
		},
		"address of managers, by one": {
			`jane <field-manager@slipstream.invalid>`, commitmessage.User{Username: "jane", Cluster: "uid"}, "jane <jane@uid>",
		},
		"a template for some users": {withGroup, account, "system:serviceaccount:shop:web <shop/web@uid>"},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := commitmessage.ParseAuthor(test.template)
			if err != nil {
				t.Fatal(err)
			}
			name, email := template.Identity(test.user)
			if got := name + " <" + email + ">"; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFieldManagersAreNoUsers(t *testing.T) {
	for manager, want := range map[string]string{
		"kubectl":                 "kubectl (field manager)",
		"jane <jane@example.com>": "jane jane@example.com (field manager)",
		"jane\nX: y\u202e":        `jane\u000aX: y\u202e (field manager)`,
		"":                        "(field manager)",
		strings.Repeat("ü", 200):  strings.Repeat("ü", 120) + " (field manager)",
	} {
		name, email := commitmessage.Manager(manager)
		if name != want || email != "field-manager@slipstream.invalid" {
			t.Errorf("%q: got %q <%s>, want %q", manager, name, email, want)
		}
	}
}

func change(operation, name string) commitmessage.Change {
	return commitmessage.Change{Operation: operation, Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: name}
}

func TestMessages(t *testing.T) {
	about := commitmessage.About{Destination: "shop/main", Username: "jane", Author: "Jane", Attribution: "audit", Cluster: "uid"}
	one := []commitmessage.Change{change(commitmessage.Update, "web")}
	several := append(slices.Clone(one), change(commitmessage.Delete, "api"), commitmessage.Change{
		Operation: commitmessage.Create, Version: "v1", Resource: "namespaces", Name: "shop",
	})
	many := slices.Repeat(one, 60)
	for name, test := range map[string]struct {
		template string
		changes  []commitmessage.Change
		seed     bool
		want     string
	}{
		"one":           {"", one, false, "[UPDATE] apps/v1/deployments shop/web\n"},
		"one of a seed": {"", one, true, "[SEED] UPDATE apps/v1/deployments shop/web\n"},
		"several": {
			"", several, false,
			"[BATCH] 3 objects: 1 created, 1 updated, 1 deleted\n\nUPDATE apps/v1/deployments shop/web\nDELETE apps/v1/deployments " +
				"shop/api\nCREATE v1/namespaces shop\n",
		},
		"many": {
			"", many, true, "[SEED] 60 objects: 60 updated\n\n" + strings.Repeat("UPDATE apps/v1/deployments shop/web\n", 50) + "and 10 more\n",
		},
		"counts":    {"{{.Count}} {{.Created}} {{.Updated}} {{.Deleted}}", several, false, "3 1 1 1\n"},
		"in common": {"{{.Group}} {{.Resource}} {{.Namespace}} {{.Name}}|", several[:2], false, "apps deployments shop |\n"},
		"about": {
			"{{.Destination}} {{.Username}} {{.Author}} {{.Attribution}} {{.Cluster}}", one, false, "shop/main jane Jane audit uid\n",
		},
		"subject and all": {
			"chore: {{.Subject}}\n\n{{.Summary}}\n", several[:2], false,
			"chore: [BATCH] 2 objects: 1 updated, 1 deleted\n\nUPDATE apps/v1/deployments shop/web\nDELETE apps/v1/deployments shop/api\n",
		},
		"writes nothing": {"{{if eq .Count 1}} {{else}}x{{end}}", one, false, "[UPDATE] apps/v1/deployments shop/web\n"},
		"fails": {
			"{{if gt .Count 50}}{{index .Changes 99}}{{else}}x{{end}}", many, false,
			"[UPDATE] 60 objects: 60 updated\n\n" + strings.Repeat("UPDATE apps/v1/deployments shop/web\n", 50) + "and 10 more\n",
		},
		"too much": {
			"{{range .Changes}}{{$.Summary}}{{end}}", many, false,
			"[UPDATE] 60 objects: 60 updated\n\n" + strings.Repeat("UPDATE apps/v1/deployments shop/web\n", 50) + "and 10 more\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := commitmessage.ParseMessage(test.template)
			if err != nil {
				t.Fatal(err)
			}
			if got := template.Text(commitmessage.NewMessage(about, test.changes, test.seed), nil); got != test.want+"\n" {
				t.Errorf("got %q, want %q", got, test.want+"\n")
			}
		})
	}
}

// TestTrailersAreReadByGit compares the trailers of unusual messages with those that git finds.
func TestTrailersAreReadByGit(t *testing.T) {
	trailers := []commitmessage.Trailer{{Key: "X-One", Value: "1"}, {Key: "X-Two", Value: "eve\nX-Three: 3"}, {Key: "X-Empty"}}
	const want = "X-One: 1\nX-Two: eve\\u000aX-Three: 3\nX-Empty: \n"
	repository := t.TempDir()
	git := func(input string, arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", arguments...)
		command.Dir, command.Stdin = repository, strings.NewReader(input)
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", arguments, err, output)
		}
		return strings.TrimRight(string(output), "\n") + "\n"
	}
	git("", "init", "--quiet")
	tree := strings.TrimSpace(git("", "mktree"))
	odd := commitmessage.Change{Operation: commitmessage.Create, Version: "v1", Resource: "x", Name: "a\n\nX-One: forged"}
	for name, text := range map[string]string{
		"none":               "",
		"a line":             "subject",
		"blank at the end":   "subject\n\n \t\n\n\n",
		"trailers of users":  "subject\n\nSigned-off-by: a <a@example.com>\n",
		"looks like a patch": "subject\n\nbody\n---\n",
		"scissors":           "subject\n# ------------------------ >8 ------------------------\nbody\n",
		"ends in scissors":   "# ------------------------ >8 ------------------------",
		"comments":           "# subject\n# more\n",
		"conflicts":          "subject\n\nConflicts:\n\ta\n",
		"colon":              "subject:\n\nX-One: mine:\n ",
		"carriage returns":   "subject\r\n\r\nbody\r\n\r\n",
		"control characters": "subject\x00\x01\n\nbody\v\f\x7f",
		"invalid":            "\xff\xfe",
		"indented":           "subject\n\n  continued\n\t",
		"object":             "{{.Subject}}",
		"only blanks":        " \n\n ",
	} {
		t.Run(name, func(t *testing.T) {
			template, err := commitmessage.ParseMessage(text)
			if err != nil {
				t.Fatal(err)
			}
			message := template.Text(commitmessage.NewMessage(commitmessage.About{}, []commitmessage.Change{odd}, false), trailers)
			commit := strings.TrimSpace(git(message, "commit-tree", tree))
			if got := git("", "show", "--no-patch", "--format=%(trailers)", commit); got != want {
				t.Errorf("trailers = %q, want %q; message %q", got, want, message)
			}
			if subject := strings.TrimSpace(git("", "show", "--no-patch", "--format=%s", commit)); subject == "" ||
				strings.Contains(subject, "X-One: 1") {
				t.Errorf("subject = %q", subject)
			}
		})
	}
}

// FuzzTemplates executes templates that are accepted: the output must not exceed its limit, an author must be one line, and trailers must
// be unchanged.
func FuzzTemplates(f *testing.F) {
	f.Add("{{.Subject}}\n{{range .Changes}}{{.Operation}} {{.Namespace}}/{{.Name}}\n{{end}}")
	f.Add(`{{range $i, $c := $.Changes}}{{$i}} {{$c.Name}} {{$.Author}}{{else}}none{{end}}`)
	f.Add(`{{$x := .Summary}}{{$x = slice $x 1}}{{with $x}}{{.}}{{end}}`)
	f.Add(`{{.Name}} <{{.Email}}>`)
	message := commitmessage.NewMessage(commitmessage.About{Author: "x\ny", Username: "<x>"},
		slices.Repeat([]commitmessage.Change{change(commitmessage.Update, "a\nb")}, 2000), false)
	f.Fuzz(func(t *testing.T, text string) {
		if template, err := commitmessage.ParseMessage(text); err == nil {
			got := template.Text(message, []commitmessage.Trailer{{Key: "X", Value: text}})
			if before, last, found := strings.Cut(got, "\n\nX: "); len(got) > 64<<10+8<<10 || !found || !strings.Contains(before+last, "\n") {
				t.Errorf("message has %d bytes: %.1000q", len(got), got)
			}
		}
		if template, err := commitmessage.ParseAuthor(text); err == nil {
			name, email := template.Identity(commitmessage.User{Username: text, Name: "a\nb", Email: "<x>", Cluster: text})
			if strings.ContainsAny(name+email, "<>\n\r\x00") || len(name)+len(email) > 1024 {
				t.Errorf("author = %q <%q>", name, email)
			}
		}
	})
}

func ExampleMessageTemplate_Text() {
	template, _ := commitmessage.ParseMessage("{{.Username}} changed {{.Count}} {{.Resource}}")
	message := commitmessage.NewMessage(commitmessage.About{Username: "jane"},
		[]commitmessage.Change{change(commitmessage.Update, "web")}, false)
	fmt.Print(template.Text(message, []commitmessage.Trailer{{Key: "X-ConfigButler-Operation", Value: message.Operation}}))
	// Output:
	// jane changed 1 deployments
	//
	// X-ConfigButler-Operation: UPDATE
}
