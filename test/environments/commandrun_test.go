// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

const (
	// hangs is longer than a command without a server takes unless it hangs.
	hangs = time.Minute
	// widest is the number of characters of a line of a table that is piped, and narrow that of a small terminal.
	widest, narrow = 100, 60
	// noServer is an address at which no server listens: the port is reserved.
	noServer = "https://127.0.0.1:1"
)

// result is what a run of the plugin has printed, and its exit code.
type result struct {
	out, notes string
	code       int
}

// run runs a command line of the plugin in the namespace of the team.
func (c *commands) run(t *testing.T, by *people.Person, row commandRow, line string) result {
	t.Helper()
	return c.runAs(t, by.Kubectl.User, row, line)
}

func (c *commands) runAs(t *testing.T, user devcluster.Kubeconfig, row commandRow, line string) (got result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Timeout)
	defer cancel()
	if user == c.unreachable {
		ctx, cancel = context.WithTimeout(ctx, hangs)
		defer cancel()
	}
	command := c.command(ctx, user, line)
	var out, notes bytes.Buffer
	command.Stdout, command.Stderr = &out, &notes
	if row.input != "" {
		command.Stdin, command.Stdout = untilAnswered(row.input, &out)
	}
	got.code = exitCode(t, command.Run())
	got.out, got.notes = out.String(), notes.String()
	if ctx.Err() != nil {
		t.Errorf("%s has not ended: %s%s", line, got.out, got.notes)
	}
	return got
}

// untilAnswered returns an input that ends when something is written to the output.
func untilAnswered(input string, out io.Writer) (stdin io.Reader, stdout io.Writer) {
	open, end := io.Pipe()
	return io.MultiReader(strings.NewReader(input), open), writer(func(text []byte) (int, error) {
		_ = end.Close() // It has no errors.
		return out.Write(text)
	})
}

// writer is a function that writes.
type writer func([]byte) (int, error)

func (w writer) Write(text []byte) (int, error) { return w(text) }

// command returns a command line of the plugin with the values of the cluster.
func (c *commands) command(ctx context.Context, user devcluster.Kubeconfig, line string) *exec.Cmd {
	arguments := strings.Fields(strings.NewReplacer("{dir}", c.folder, "{blue}", c.blue).Replace(line))
	return devcluster.Kubectl{Program: c.program, User: user}.Command(ctx, append(arguments, "-n", c.team)...)
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	exit := (*exec.ExitError)(nil)
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

// onTerminal runs a command line on a narrow terminal, and returns what it shows.
func (c *commands) onTerminal(t *testing.T, by *people.Person, line string) (got result) {
	t.Helper()
	screen, terminal := testkit.OpenTerminal(t, narrow, 40)
	command := c.command(t.Context(), by.Kubectl.User, line)
	command.Stdout, command.Stderr = terminal, terminal
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()           // The command has its own.
	shown, _ := io.ReadAll(screen) // It ends with an error when the command does.
	got.code = exitCode(t, command.Wait())
	got.out = strings.ReplaceAll(string(shown), "\r", "")
	return got
}

// unreachableServer returns a kubeconfig of a user whose server does not listen.
func unreachableServer(t *testing.T, of *people.Person) devcluster.Kubeconfig {
	t.Helper()
	config, err := clientcmd.LoadFromFile(string(of.Kubectl.User))
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = noServer
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return devcluster.Kubeconfig(path)
}

// expectPlain expects piped output without escape sequences, and with lines that fit if they are those of a table.
func expectPlain(t *testing.T, line string, got result, table bool) {
	t.Helper()
	if strings.Contains(got.out+got.notes, "\x1b") {
		t.Errorf("%s prints escape sequences: %q", line, got.out+got.notes)
	}
	for each := range strings.Lines(got.out) {
		if width := utf8.RuneCountInString(strings.TrimSuffix(each, "\n")); table && width > widest {
			t.Errorf("%s prints a line of %d characters: %s", line, width, each)
		}
	}
}

// expectJSON expects an object of a kind, or a JSON object with a field if kind begins with a dot.
func expectJSON(t *testing.T, line, kind string, got result) {
	t.Helper()
	var object map[string]any
	if err := json.NewDecoder(strings.NewReader(got.out)).Decode(&object); err != nil { // Only mirror prints several objects.
		t.Fatalf("%s prints no JSON: %v: %s%s", line, err, got.out, got.notes)
	}
	filter := ".kind != null and .apiVersion != null"
	if field, ok := strings.CutPrefix(kind, "."); ok {
		filter = fmt.Sprintf("has(%q)", field)
		if object[field] == nil {
			t.Errorf("%s prints no field %s: %s", line, field, got.out)
		}
	} else if object["kind"] != kind || object["apiVersion"] == nil {
		t.Errorf("%s prints a %v of %v, want a %s", line, object["kind"], object["apiVersion"], kind)
	}
	jq, err := exec.LookPath("jq")
	if err != nil {
		return
	}
	command := exec.CommandContext(t.Context(), jq, "-e", filter)
	command.Stdin = strings.NewReader(got.out) // The exit code is that of the last object.
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s | jq -e '%s': %v: %s", line, filter, err, out)
	}
}

// permission matches a message that names a missing permission of nora.
var permission = regexp.MustCompile(`You \(nora\) lack the permission to \w+ \S+|User "nora" cannot \w+ resource`)

// expectDenied expects the exit code and the message of a missing permission, and nothing else.
func expectDenied(t *testing.T, line string, got result) {
	t.Helper()
	if got.code != 5 || !permission.MatchString(got.notes) || got.out != "" {
		t.Errorf("%s by nora: exit code %d: %s%s", line, got.code, got.out, got.notes)
	}
	if strings.Contains(got.notes, "goroutine") || strings.Contains(got.notes, `{"`) {
		t.Errorf("%s by nora prints internals: %s", line, got.notes)
	}
}

// expectUnreached expects the exit code and the message of a server that does not answer.
func expectUnreached(t *testing.T, line string, got result) {
	t.Helper()
	if text := got.out + got.notes; got.code != 2 || strings.Count(text, "cannot be reached") != 1 {
		t.Errorf("%s without a server: exit code %d: %s", line, got.code, text)
	}
}

// expectSuggestion expects the exit code and the message of a wrong name.
func expectSuggestion(t *testing.T, line string, got result) {
	t.Helper()
	if got.code != 2 || !strings.Contains(got.notes, "Did you mean ") || got.out != "" {
		t.Errorf("%s: exit code %d: %s%s", line, got.code, got.out, got.notes)
	}
}

// section returns a run as it is in a golden file: the command line, what it prints, and its exit code.
func (c *commands) section(title, line string, got result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n$ kubectl slipstream %s\n%s", title, line, got.out)
	if got.out != "" && !strings.HasSuffix(got.out, "\n") {
		out.WriteString("\n")
	}
	for note := range strings.Lines(got.notes) {
		fmt.Fprintf(&out, "2> %s\n", strings.TrimSuffix(note, "\n"))
	}
	fmt.Fprintf(&out, "exit code %d\n\n", got.code)
	return strings.ReplaceAll(c.normalized(out.String()), "\x1b", "ESC")
}

// variable are the parts of outputs that differ in each run, with what replaces them.
var variable = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?\+\d{4}|Z|[+-]\d\d:\d\d)?( UTC)?`), "TIME"},
	{regexp.MustCompile(`\b\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d UTC`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{12}-[0-9a-f]{12}\b`), "CHANGE___________________"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "COMMIT__________________________________"},
	{regexp.MustCompile(`(\s)[0-9a-f]{7}\b`), "${1}COMMIT_"},
	{regexp.MustCompile(`(Get|Post) "https://127\.0\.0\.1:1/[^"]*"`), `$1 "{URL}"`}, // Several requests are sent at a time.
	{regexp.MustCompile(`127\.0\.0\.1:\d{4,5}\b`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\b(alice|carol|shop|main|commands)-[a-z0-9]{5}\b`), "$1-XXXXX"},
	// A build has a version, and outside of linked work trees its commit, or neither.
	{regexp.MustCompile(`(\(devel\)|\bv\d+\.\d+\.\d+[-+.\w]*)( \(COMMIT_+\))?`), "VERSION"},
	{regexp.MustCompile(`: not compared, since one of them is no release`), ""},
}

// age matches the age of something with the spaces after it, which fill its column.
var age = regexp.MustCompile(`\s(\d+[dhms])+( +|\b)`)

func (c *commands) normalized(text string) string {
	text = strings.NewReplacer(c.folder, "{dir}", c.program, "{program}", string(c.dave.Kubectl.User), "{kubeconfig}").Replace(text)
	for _, each := range variable {
		text = each.pattern.ReplaceAllString(text, each.by)
	}
	return age.ReplaceAllStringFunc(text, func(found string) string {
		before, rest := found[:1], found[1:]
		if spaces := strings.Count(rest, " "); spaces < 2 {
			return before + "AGE" + strings.Repeat(" ", spaces)
		}
		return fmt.Sprintf("%s%-*s", before, len(rest), "AGE")
	})
}

// commandNames returns the names of all commands of the plugin, as it completes them.
func (c *commands) commandNames(t *testing.T) (names []string) {
	t.Helper()
	out, err := devcluster.Kubectl{Program: c.program, User: c.unreachable}.Run(t.Context(), "__complete", "")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if name, _, described := strings.Cut(line, "\t"); described {
			names = append(names, name)
		}
	}
	return names
}

// change waits for the Change of an operation on a ConfigMap, and returns its name.
func (c *commands) change(t *testing.T, configMap string, operation v1alpha1.ChangeOperation) string {
	t.Helper()
	var name string
	mirrortest.Eventually(t, "the Change of "+configMap, func(ctx context.Context) error {
		out, err := c.admin.Kubectl.Run(ctx, "get", "changes.configbutler.ai", "-n", c.team, "-o",
			`jsonpath={range .items[?(@.spec.object.name=="`+configMap+`")]}{.metadata.name} {.spec.operation}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) == 2 && fields[1] == string(operation) {
				name = fields[0]
				return nil
			}
		}
		return fmt.Errorf("no %s in\n%s", operation, out)
	})
	return name
}
