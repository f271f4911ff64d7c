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
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

// hidden are the values that may be only in the cluster and in encrypted files.
var hidden = []string{"correct horse", "battery staple", "a third one"}

// TestSecrets checks that Secrets are encrypted in Git for the server's own key pair and for other recipients, and that
// decrypted files can be applied.
func TestSecrets(t *testing.T) {
	t.Parallel()
	// From -v=8 on clients log the responses; from -v=9 on client-go's timing has a data race.
	s := newTestCluster(t, devcluster.Options{ServerArgs: []string{"-v=8"}})
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
		{"OmittedAndEncryptedAgain", omittedAndEncryptedAgain},
		{"KeyPairDeleted", keyPairDeleted},
		{"NoPlainValues", noPlainValues},
	} {
		t.Run(step.name, func(t *testing.T) { step.do(t, m, key) })
	}
	m.Intact(t)
}

func secretPath(name string) string { return "core/v1/secrets/vault/" + name + ".yaml" }

// ownKeyPair returns the private key that the server has generated, after checking the condition about it.
func ownKeyPair(t *testing.T, m *mirror) string {
	t.Helper()
	message := m.Condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "KeyGenerated")
	encoded := m.Field(t, devcluster.ServerNamespace, "secret/slipstream-age", `{.data.age\.agekey}`)
	file, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	identities, err := age.ParseIdentities(strings.NewReader(string(file)))
	if err != nil {
		t.Fatal(err)
	}
	pair, ok := identities[0].(*age.X25519Identity)
	if !ok || !strings.Contains(message, pair.Recipient().String()) ||
		!strings.Contains(message, devcluster.ServerNamespace+"/slipstream-age") {
		t.Errorf("condition lacks the public key or the name of the Secret: %s", message)
	}
	if strings.Contains(message, pair.String()) {
		t.Error("condition contains the private key")
	}
	if wide := m.Run(t, "get", "gd", "main", "-n", "vault", "-o", "wide"); !strings.Contains(wide, "Encrypted") {
		t.Errorf("kubectl get gd -o wide lacks Encrypted:\n%s", wide)
	}
	return pair.String()
}

// waitForDecrypted waits until a key decrypts the file of a Secret and the content has the given text. It returns the decrypted file.
func (m *mirror) waitForDecrypted(t *testing.T, name, key, text string) string {
	t.Helper()
	var opened string
	mirrortest.Eventually(t, name+" can be decrypted", func(ctx context.Context) error {
		file, err := m.Git(ctx, "show", "main:"+m.Folder+"/"+secretPath(name))
		if err != nil {
			return err
		}
		opened, err = sopstest.Open(t, []byte(file), key)
		if err == nil && !strings.Contains(opened, text) {
			err = errors.New("content differs")
		}
		return err
	})
	return opened
}

func encoded(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }

func secretLife(t *testing.T, m *mirror, key string) {
	m.Run(t, "create", "secret", "generic", "db", "-n", "vault", "--from-literal=password="+hidden[0], "--from-literal=user=admin")
	opened := m.waitForDecrypted(t, "db", key, encoded(hidden[0]))
	m.Run(t, "patch", "secret", "db", "-n", "vault", "-p", fmt.Sprintf(`{"stringData":{"password":"%s"}}`, hidden[1]))
	m.waitForDecrypted(t, "db", key, encoded(hidden[1]))

	// Applying the decrypted file restores the Secret and the same file in Git.
	first, err := m.Git(t.Context(), "rev-parse", "main~1:"+m.Folder+"/"+secretPath("db"))
	if err != nil {
		t.Fatal(err)
	}
	m.Run(t, "delete", "secret", "db", "-n", "vault")
	m.Lacks(t, secretPath("db"))
	if _, err := m.Administrator.Feed(t.Context(), opened, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	m.waitForDecrypted(t, "db", key, encoded(hidden[0]))
	if again, err := m.Git(t.Context(), "rev-parse", "main:"+m.Folder+"/"+secretPath("db")); err != nil || again != first {
		t.Errorf("blob after applying = %s, want %s (%v)", again, first, err)
	}
	if value := m.Field(t, "vault", "secret/db", "{.data.password}"); value != encoded(hidden[0]) {
		t.Error("value of the Secret was not restored")
	}
	if log, err := m.Git(t.Context(), "log", "--reverse", "--format=%s", "main", "--", m.Folder+"/"+secretPath("db")); err != nil || log !=
		"[CREATE] v1/secrets vault/db\n[UPDATE] v1/secrets vault/db\n[DELETE] v1/secrets vault/db\n[CREATE] v1/secrets vault/db\n" {
		t.Errorf("commits (%v):\n%s", err, log)
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
		m.mustCompare(t)
	}
	if after := m.Commits(t); after != before {
		t.Errorf("%s commits, before the restarts %s", after, before)
	}
}

// mustCompare requests a comparison, retrying until the server accepts it, and waits until the destination has settled.
func (m *mirror) mustCompare(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "the comparison succeeds", func(ctx context.Context) error {
		_, err := m.Try.Post(ctx, m.syncPath(), "")
		return err
	})
	m.Settled(t)
}

// encryptFor sets spec.encryption; null means the server's own key pair.
func (m *mirror) encryptFor(t *testing.T, recipients string) {
	t.Helper()
	m.Patch(t, "vault", "gitdestination/main", `{"spec":{"secrets":"Encrypt","encryption":`+recipients+`}}`)
}

func recipientsChange(t *testing.T, m *mirror, _ string) {
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		m.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: vault}, stringData: {value: %q}}",
			name, hidden[2]))
	}
	m.Holds(t, secretPath("two"), "sops:\n")
	m.Settled(t)
	if _, err := m.Administrator.Run(t.Context(), "patch", "gitdestination", "main", "-n", "vault",
		"--type=merge", "-p", `{"spec":{"encryption":{"ageRecipients":["age1slip"]}}}`); err == nil ||
		!strings.Contains(err.Error(), "spec.encryption.ageRecipients[0]") || !strings.Contains(err.Error(), "age1 and 58 characters") {
		t.Errorf("invalid recipient: %v", err)
	}
	before := m.Commits(t)
	m.encryptFor(t, `{"ageRecipients":["`+mine.Recipient().String()+`"]}`)
	for _, name := range []string{"db", "one", "two"} {
		m.waitForDecrypted(t, name, mine.String(), "kind: Secret")
	}
	m.Condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "RecipientsGiven")
	if log, err := m.Git(t.Context(), "rev-list", "--count", "main", "^main~1"); err != nil || strings.TrimSpace(log) != "1" {
		t.Errorf("%q, %v", log, err)
	}
	if stat, err := m.Git(t.Context(), "show", "--format=", "--name-only", "main"); err != nil || len(strings.Fields(stat)) != 3 {
		t.Errorf("after %s commits, the last has %s (%v)", before, stat, err)
	}
}

func omittedAndEncryptedAgain(t *testing.T, m *mirror, key string) {
	m.Patch(t, "vault", "gitdestination/main", `{"spec":{"secrets":"Omit"}}`)
	m.Lacks(t, secretPath("db"))
	m.Condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "SecretsOmitted")
	m.encryptFor(t, "null")
	m.waitForDecrypted(t, "db", key, encoded(hidden[0]))
}

func keyPairDeleted(t *testing.T, m *mirror, _ string) {
	pair := m.Run(t, "get", "secret", "slipstream-age", "-n", devcluster.ServerNamespace, "-o", "yaml")
	m.Delete(t, devcluster.ServerNamespace, "secret/slipstream-age")
	m.Settled(t)
	before := m.Commits(t)
	if err := m.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := m.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if message := m.Condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "KeyUnavailable"); !strings.Contains(message, "is gone") {
		t.Errorf("condition message: %s", message)
	}
	m.mustCompare(t)
	if after := m.Commits(t); after != before {
		t.Errorf("%s commits, before the key pair was deleted %s", after, before)
	}
	if _, err := m.Administrator.Run(t.Context(), "get", "secret", "slipstream-age", "-n", devcluster.ServerNamespace); err == nil {
		t.Error("another key pair was generated")
	}
	var kept []string
	for line := range strings.Lines(pair) {
		if !strings.Contains(line, "resourceVersion:") && !strings.Contains(line, "uid:") {
			kept = append(kept, line)
		}
	}
	m.Apply(t, strings.Join(kept, ""))
	m.Condition(t, "vault", "gitdestination/main", "SecretsEncrypted", "KeyGenerated")
}

// noPlainValues searches the whole history, the server's log, its stores and its API objects for plain values.
func noPlainValues(t *testing.T, m *mirror, _ string) {
	history, err := m.Git(t.Context(), "log", "-p", "--all")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{
		"Git": history, "the API": m.Run(t, "get", "gd,gds,wr,events", "-A", "-o", "yaml"),
		"the log": readFile(t, m.Env(devcluster.EnvServerLog)),
	}
	// Requests for Secrets are logged only if client-go logs at this level.
	if !strings.Contains(places["the log"], "/api/v1/namespaces/vault/secrets") {
		t.Error("the server does not log its requests: the log was not tested")
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
				t.Errorf("%s contains %q", place, value)
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
