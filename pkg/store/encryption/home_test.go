// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

func newFolder(t *testing.T) encryption.Folder {
	t.Helper()
	return encryption.Folder{Path: t.TempDir()}
}

func newSecret() encryption.ClusterSecret {
	return encryption.ClusterSecret{Client: fake.NewClientset().CoreV1().Secrets("ns"), Namespace: "ns"}
}

// onEveryHome runs a test with a folder and with a Secret.
func onEveryHome(t *testing.T, test func(*testing.T, encryption.Home)) {
	t.Helper()
	t.Run("file", func(t *testing.T) { test(t, newFolder(t)) })
	t.Run("Secret", func(t *testing.T) { test(t, newSecret()) })
}

// nothing finds no encrypted row.
func nothing(context.Context) (string, error) { return "", nil }

func ensure(t *testing.T, home encryption.Home) {
	t.Helper()
	if err := encryption.Ensure(t.Context(), home, nothing); err != nil {
		t.Fatal(err)
	}
}

func rotate(t *testing.T, home encryption.Home) string {
	t.Helper()
	name, err := encryption.Rotate(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// keys returns the names of the keys of an origin, the one that encrypts first.
func keys(t *testing.T, origin encryption.Origin) (names []string) {
	t.Helper()
	content, err := origin.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var configuration apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict(content, &configuration); err != nil {
		t.Fatal(err)
	}
	for _, key := range configuration.Resources[0].Providers[0].Secretbox.Keys {
		names = append(names, key.Name)
	}
	return names
}

func TestConfigurationIsMadeOnce(t *testing.T) {
	onEveryHome(t, func(t *testing.T, home encryption.Home) {
		if _, err := home.Read(t.Context()); !errors.Is(err, encryption.ErrAbsent) {
			t.Fatalf("before the first start: %v", err)
		}
		group, ctx := errgroup.WithContext(t.Context())
		for range 8 {
			group.Go(func() error { return encryption.Ensure(ctx, home, nothing) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		before, err := home.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ensure(t, home)
		after, err := home.Read(t.Context())
		if err != nil || string(after) != string(before) || len(keys(t, home)) != 1 {
			t.Errorf("the configuration changed (%v), keys %q", err, keys(t, home))
		}
	})
}

func TestMissingConfigurationIsNotReplaced(t *testing.T) {
	onEveryHome(t, func(t *testing.T, home encryption.Home) {
		err := encryption.Ensure(t.Context(), home, func(context.Context) (string, error) { return "/a is encrypted with secretbox", nil })
		for _, want := range []string{home.String(), "is missing", "/a is encrypted with secretbox", "--encryption-provider-config"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		}
		if _, err := home.Read(t.Context()); !errors.Is(err, encryption.ErrAbsent) {
			t.Errorf("a configuration was made: %v", err)
		}
	})
}

// TestReplicaThatLosesTheRaceTakesTheOthersKey finds rows that another replica has encrypted since this one looked for
// the key.
func TestReplicaThatLosesTheRaceTakesTheOthersKey(t *testing.T) {
	home := newSecret()
	err := encryption.Ensure(t.Context(), home, func(ctx context.Context) (string, error) {
		return "/a is encrypted with secretbox", encryption.Ensure(ctx, home, nothing)
	})
	if err != nil || len(keys(t, home)) != 1 {
		t.Errorf("error %v, keys %q", err, keys(t, home))
	}
}

func TestRotate(t *testing.T) {
	t.Run("File", func(t *testing.T) {
		home := newFolder(t)
		ensure(t, home)
		first := keys(t, home)[0]
		second := rotate(t, home)
		third := rotate(t, home)
		if got, want := keys(t, home), []string{third, second, first}; !slices.Equal(got, want) {
			t.Errorf("keys %q, want %q", got, want)
		}
	})
	t.Run("Secret", func(t *testing.T) {
		home := newSecret()
		ensure(t, home)
		first := keys(t, home)[0]
		second := rotate(t, home)
		if again := rotate(t, home); again != second {
			t.Errorf("key %s besides %s, which waits", again, second)
		}
		if got, want := keys(t, home), []string{first, second}; !slices.Equal(got, want) {
			t.Errorf("keys %q, want %q", got, want)
		}
	})
	t.Run("Absent", func(t *testing.T) {
		onEveryHome(t, func(t *testing.T, home encryption.Home) {
			if _, err := encryption.Rotate(t.Context(), home); !errors.Is(err, encryption.ErrAbsent) ||
				!strings.Contains(err.Error(), home.String()) {
				t.Errorf("error %v, want %v and where", err, encryption.ErrAbsent)
			}
		})
	})
}

func TestRotationsDoNotOvertakeEachOther(t *testing.T) {
	home := newFolder(t)
	ensure(t, home)
	group, ctx := errgroup.WithContext(t.Context())
	for range 8 {
		group.Go(func() error {
			_, err := encryption.Rotate(ctx, home)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	found := keys(t, home)
	slices.Sort(found)
	if len(slices.Compact(found)) != 9 {
		t.Errorf("keys %q, want 9", found)
	}
}

func TestConfigurationOfAnotherFormIsLeftAlone(t *testing.T) {
	home := newFolder(t)
	for name, content := range map[string]string{
		"no YAML":          "{",
		"an unknown field": "kind: EncryptionConfiguration\nsecrets: []\n",
		"another provider": "resources: [{resources: ['*.*'], providers: [{identity: {}}]}]\n",
		"nothing":          "kind: EncryptionConfiguration\n",
	} {
		t.Run(name, func(t *testing.T) {
			write(t, home.String(), content)
			if _, err := encryption.Rotate(t.Context(), home); err == nil || !strings.Contains(err.Error(), home.String()) {
				t.Errorf("error %v, want one that names the file", err)
			}
			if got, err := os.ReadFile(home.String()); err != nil || string(got) != content {
				t.Errorf("the file has become %q (%v)", got, err)
			}
		})
	}
}

// write creates a file with mode 0600.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRightsOfTheFile(t *testing.T) {
	home := newFolder(t)
	ensure(t, home)
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o660: false, 0o604: true, 0o666: true} {
		if err := os.Chmod(home.String(), mode); err != nil {
			t.Fatal(err)
		}
		_, err := home.Read(t.Context())
		if refused != (err != nil) {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if refused && !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %04o: %v, want it to say what to do", mode, err)
		}
		info, err := os.Stat(home.String())
		if err != nil {
			t.Fatal(err)
		}
		if !refused && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("mode %04o became %04o", mode, info.Mode().Perm())
		}
	}
}

func TestFileIsReplacedAsAWhole(t *testing.T) {
	home := newFolder(t)
	ensure(t, home)
	// What a process left that died while it wrote.
	write(t, filepath.Join(home.Path, "."+encryption.FileName+".new"), "half of a")
	before := keys(t, home)
	name := rotate(t, home)
	if got, want := keys(t, home), append([]string{name}, before...); !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	entries, err := os.ReadDir(home.Path)
	if err != nil || len(entries) != 1 {
		t.Errorf("files %v (%v), want one", entries, err)
	}
	info, err := os.Stat(home.String())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
}

// TestSecretIsNotMirrored checks that readers of a mirror do not get the keys of the store.
func TestSecretIsNotMirrored(t *testing.T) {
	home := newSecret()
	ensure(t, home)
	secret, err := home.Client.Get(t.Context(), encryption.SecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if secret.Annotations[v1alpha1.AnnotationMirror] != "false" {
		t.Errorf("the Secret with the keys has the annotations %v", secret.Annotations)
	}
}
