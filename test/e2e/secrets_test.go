// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/sopstest"
)

// The values that must be nowhere but in the cluster and in files that are encrypted.
var hidden = []string{"correct horse", "battery staple", "a third one"}

// Secrets reach Git encrypted, for the server's own key pair and for others, and what is
// opened can be applied.
func TestSecrets(t *testing.T) {
	// From 8 on clients log whatever they are answered; from 9 on client-go's timing has a data race.
	s := newStage(t, devcluster.Options{ServerArgs: []string{"-v=8"}})
	m := s.newMirror(t, "vault")
	m.Watch(t, "secrets", "secrets")
	key := ownKeyPair(t, m)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *mirror, string)
	}{
		{"CreatedChangedDeletedApplied", secretLife},
		{"UnchangedOverRestarts", unchangedOverRestarts},
		{"RecipientsChange", recipientsChange},
		{"LeftOutAndBack", leftOutAndBack},
		{"KeyPairIsGone", keyPairIsGone},
		{"NothingIsShown", hiddenEverywhere},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(t, m, key) })
	}
	m.Intact(t)
}

func secretPath(name string) string { return "core/v1/secrets/vault/" + name + ".yaml" }

// ownKeyPair returns the private key that the server has made, after looking at what it
// says about it.
func ownKeyPair(t *testing.T, m *mirror) string {
	t.Helper()
	told := m.condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "KeyGenerated")
	encoded := m.Run(t, "get", "secret", "slipstream-age", "-n", devcluster.ServerNamespace, "-o", `jsonpath={.data.age\.agekey}`)
	file, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	identities, err := age.ParseIdentities(strings.NewReader(string(file)))
	if err != nil {
		t.Fatal(err)
	}
	pair, ok := identities[0].(*age.X25519Identity)
	if !ok || !strings.Contains(told, pair.Recipient().String()) || !strings.Contains(told, devcluster.ServerNamespace+"/slipstream-age") {
		t.Errorf("the condition does not tell the public key and its place: %s", told)
	}
	if strings.Contains(told, pair.String()) {
		t.Error("the condition tells the private key")
	}
	if wide := m.Run(t, "get", "gd", "main", "-n", "vault", "-o", "wide"); !strings.Contains(wide, "Encrypted") {
		t.Errorf("kubectl get gd -o wide does not say that Secrets are encrypted:\n%s", wide)
	}
	return pair.String()
}

// opens waits until a key opens a Secret's file, and a text is in it. It returns what sops
// prints.
func (m *mirror) opens(t *testing.T, name, key, text string) string {
	t.Helper()
	var opened string
	mirrortest.Eventually(t, name+" opens", func(ctx context.Context) error {
		file, err := m.Git(ctx, "show", "main:"+m.Folder+"/"+secretPath(name))
		if err != nil {
			return err
		}
		opened, err = sopstest.Open(t, []byte(file), key)
		if err == nil && !strings.Contains(opened, text) {
			err = errors.New("it has other content")
		}
		return err
	})
	return opened
}

func encoded(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }

func secretLife(t *testing.T, m *mirror, key string) {
	m.Run(t, "create", "secret", "generic", "db", "-n", "vault", "--from-literal=password="+hidden[0], "--from-literal=user=admin")
	opened := m.opens(t, "db", key, encoded(hidden[0]))
	m.Run(t, "patch", "secret", "db", "-n", "vault", "-p", fmt.Sprintf(`{"stringData":{"password":"%s"}}`, hidden[1]))
	m.opens(t, "db", key, encoded(hidden[1]))

	// What was opened puts the Secret back as it was, and makes the very file of then.
	first, err := m.Git(t.Context(), "rev-parse", "main~1:"+m.Folder+"/"+secretPath("db"))
	if err != nil {
		t.Fatal(err)
	}
	m.Run(t, "delete", "secret", "db", "-n", "vault")
	m.Lacks(t, secretPath("db"))
	m.Apply(t, opened)
	m.opens(t, "db", key, encoded(hidden[0]))
	if again, err := m.Git(t.Context(), "rev-parse", "main:"+m.Folder+"/"+secretPath("db")); err != nil || again != first {
		t.Errorf("applied again it is %s, was %s (%v)", again, first, err)
	}
	if value := m.Run(t, "get", "secret", "db", "-n", "vault", "-o", "jsonpath={.data.password}"); value != encoded(hidden[0]) {
		t.Error("the Secret is not as it was")
	}
	if log, err := m.Git(t.Context(), "log", "--reverse", "--format=%s", "main", "--", m.Folder+"/"+secretPath("db")); err != nil || log !=
		"[CREATE] v1/secrets vault/db\n[UPDATE] v1/secrets vault/db\n[DELETE] v1/secrets vault/db\n[CREATE] v1/secrets vault/db\n" {
		t.Errorf("the log is (%v):\n%s", err, log)
	}
}

func unchangedOverRestarts(t *testing.T, m *mirror, _ string) {
	m.Settled(t)
	before := m.Commits(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := m.StopServer(t.Context(), signal); err != nil {
			t.Fatal(err)
		}
		if err := m.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.compared(t)
	}
	if after := m.Commits(t); after != before {
		t.Errorf("%s commits, before the restarts %s", after, before)
	}
}

// compared waits until everything has been compared since the server started.
func (m *mirror) compared(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "everything is compared", func(ctx context.Context) error {
		_, err := m.compare(ctx, m.Administrator, "", "")
		return err
	})
	m.Settled(t)
}

// encryptFor changes the recipients; none are the server's own key pair.
func (m *mirror) encryptFor(t *testing.T, recipients string) {
	t.Helper()
	m.Run(t, "patch", "gitdestination", "main", "-n", "vault", "--type=merge", "-p", `{"spec":{"secrets":"Encrypt","encryption":`+recipients+`}}`)
}

func recipientsChange(t *testing.T, m *mirror, _ string) {
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		m.Run(t, "create", "secret", "generic", name, "-n", "vault", "--from-literal=value="+hidden[2])
	}
	m.Holds(t, secretPath("two"), "sops:\n")
	m.Settled(t)
	if _, err := m.Administrator.Run(t.Context(), "patch", "gitdestination", "main", "-n", "vault", "--type=merge", "-p", `{"spec":{"encryption":{"ageRecipients":["age1slip"]}}}`); err == nil ||
		!strings.Contains(err.Error(), "spec.encryption.ageRecipients[0]") || !strings.Contains(err.Error(), "age1 and 58 characters") {
		t.Errorf("a bad recipient: %v", err)
	}
	before := m.Commits(t)
	m.encryptFor(t, `{"ageRecipients":["`+mine.Recipient().String()+`"]}`)
	for _, name := range []string{"db", "one", "two"} {
		m.opens(t, name, mine.String(), "kind: Secret")
	}
	m.condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "RecipientsGiven")
	if log, err := m.Git(t.Context(), "rev-list", "--count", "main", "^main~1"); err != nil || strings.TrimSpace(log) != "1" {
		t.Errorf("%q, %v", log, err)
	}
	if stat, err := m.Git(t.Context(), "show", "--format=", "--name-only", "main"); err != nil || len(strings.Fields(stat)) != 3 {
		t.Errorf("after %s commits, the last has %s (%v)", before, stat, err)
	}
}

func leftOutAndBack(t *testing.T, m *mirror, key string) {
	m.Run(t, "patch", "gitdestination", "main", "-n", "vault", "--type=merge", "-p", `{"spec":{"secrets":"Omit"}}`)
	m.Lacks(t, secretPath("db"))
	m.condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "SecretsOmitted")
	m.encryptFor(t, "null")
	m.opens(t, "db", key, encoded(hidden[0]))
}

func keyPairIsGone(t *testing.T, m *mirror, _ string) {
	pair := m.Run(t, "get", "secret", "slipstream-age", "-n", devcluster.ServerNamespace, "-o", "yaml")
	m.Run(t, "delete", "secret", "slipstream-age", "-n", devcluster.ServerNamespace)
	m.Settled(t)
	before := m.Commits(t)
	if err := m.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := m.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := m.condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "KeyUnavailable"); !strings.Contains(told, "is gone") {
		t.Errorf("the condition says %s", told)
	}
	m.compared(t)
	if after := m.Commits(t); after != before {
		t.Errorf("%s commits, before the key pair went %s", after, before)
	}
	if _, err := m.Administrator.Run(t.Context(), "get", "secret", "slipstream-age", "-n", devcluster.ServerNamespace); err == nil {
		t.Error("another key pair was made")
	}
	var kept []string
	for line := range strings.Lines(pair) {
		if !strings.Contains(line, "resourceVersion:") && !strings.Contains(line, "uid:") {
			kept = append(kept, line)
		}
	}
	m.Apply(t, strings.Join(kept, ""))
	m.condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "KeyGenerated")
}

// hiddenEverywhere looks for plain values in the whole history, the server's log, its
// stores and what it tells.
func hiddenEverywhere(t *testing.T, m *mirror, _ string) {
	history, err := m.Git(t.Context(), "log", "-p", "--all")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{
		"Git": history, "what the server tells": m.Run(t, "get", "gd,gds,wr,events", "-A", "-o", "yaml"),
		"the log": readFile(t, m.Env(devcluster.EnvServerLog)),
	}
	// The line with which client-go begins to be talkative.
	if !strings.Contains(places["the log"], "/api/v1/namespaces/vault/secrets") {
		t.Error("the server does not log which Secrets it asks for: nothing was tested")
	}
	entries, err := os.ReadDir(m.Env(devcluster.EnvDataDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".db") {
			places["the store "+entry.Name()] = readFile(t, m.Env(devcluster.EnvDataDir)+"/"+entry.Name())
		}
	}
	for place, text := range places {
		for _, value := range append([]string{"AGE-SECRET-KEY-1"}, hidden...) {
			if strings.Contains(text, value) || strings.Contains(text, encoded(value)) {
				t.Errorf("%s shows %q", place, value)
			}
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
