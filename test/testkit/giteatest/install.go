// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package giteatest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// buildLimit is the timeout for building Gitea on a busy machine.
const buildLimit = 30 * time.Minute

// giteaModule is the module with the files that Gitea reads.
const giteaModule = "code.gitea.io/gitea"

// staticFolders are the folders of the module that Gitea reads. The scripts and styles of its pages are not in the module, so a browser
// cannot show them; the API and Git need none.
var staticFolders = []string{"options", "public", "templates"}

// installation is a folder with everything that a Gitea reads and writes.
type installation struct {
	folder, program string
	// user is the user as whom Gitea runs, nil for that of the test.
	user *user.User
}

// install builds Gitea and writes it and its settings to a folder of its own. Gitea refuses to run as root. It runs as nobody then, who
// cannot read what is in the folders of root, so the program and its files are copied.
func install(t testing.TB, settings func(folder string) string) *installation {
	t.Helper()
	folder, err := os.MkdirTemp("", "gitea-") // The folder of t.TempDir cannot be read by another user.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	i := &installation{folder: folder, program: filepath.Join(folder, "gitea")}
	if os.Geteuid() == 0 {
		if i.user, err = user.Lookup("nobody"); err != nil {
			t.Fatal(err)
		}
	}
	i.copyFiles(t)
	for path, content := range map[string]string{"app.ini": settings(folder), "home/.keep": ""} {
		if err := write(filepath.Join(folder, path), content); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.own(); err != nil {
		t.Fatal(err)
	}
	return i
}

// copyFiles copies the program and the files that it reads.
func (i *installation) copyFiles(t testing.TB) {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), buildLimit)
	defer cancel()
	program, err := programs.Gitea.Build(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	static, err := programs.ModuleFolder(ctx, filepath.Join(root, "hack", "gitea"), giteaModule)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(i.program, content, 0o700)
	}
	for _, name := range staticFolders {
		if err == nil {
			err = os.CopyFS(filepath.Join(i.folder, "static", name), os.DirFS(filepath.Join(static, name)))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// own makes the user as whom Gitea runs the owner of all files.
func (i *installation) own() error {
	credential, err := i.credential()
	if credential == nil || err != nil {
		return err
	}
	return filepath.WalkDir(i.folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(credential.Uid), int(credential.Gid))
	})
}

// credential is that of the user as whom Gitea runs, nil for that of the test.
func (i *installation) credential() (*syscall.Credential, error) {
	if i.user == nil {
		return nil, nil
	}
	uid, err := strconv.ParseUint(i.user.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(i.user.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// command returns a command that runs as Gitea does: as its user, with its folder and settings.
func (i *installation) command(ctx context.Context, program string, arguments ...string) (*exec.Cmd, error) {
	credential, err := i.credential()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, append(arguments, "--config="+filepath.Join(i.folder, "app.ini"))...)
	command.Dir = i.folder
	command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	command.Env = slices.Concat(environment(), []string{"HOME=" + filepath.Join(i.folder, "home"), "GITEA_WORK_DIR=" + i.folder})
	if i.user != nil {
		command.Env = append(command.Env, "USER="+i.user.Username)
	}
	return command, nil
}

// environment is the environment of the test without what is its user's own.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GIT_") || strings.HasPrefix(variable, "GITEA_") || strings.HasPrefix(variable, "XDG_")
	})
}

// run runs a command of Gitea, which must succeed.
func (i *installation) run(t testing.TB, arguments ...string) {
	t.Helper()
	command, err := i.command(t.Context(), i.program, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("gitea %s: %v\n%s", arguments[0], err, out)
	}
}

func (i *installation) logFile() string { return filepath.Join(i.folder, "gitea.log") }

// log returns the last lines of the log.
func (i *installation) log() string {
	const last = 100
	content, err := os.ReadFile(i.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-last):], "\n")
}

// settings returns the settings of a Gitea with the addresses.
func settings(web, ssh string) func(folder string) string {
	return func(folder string) string {
		return fmt.Sprintf(settingsFormat, folder, port(web), port(ssh))
	}
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

const settingsFormat = `
APP_NAME = Gitea
RUN_MODE = prod
WORK_PATH = %[1]s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]s
DOMAIN = 127.0.0.1
ROOT_URL = http://127.0.0.1:%[2]s/
STATIC_ROOT_PATH = %[1]s/static
OFFLINE_MODE = true
START_SSH_SERVER = true
SSH_DOMAIN = 127.0.0.1
SSH_LISTEN_HOST = 127.0.0.1
SSH_PORT = %[3]s
SSH_LISTEN_PORT = %[3]s
BUILTIN_SSH_SERVER_USER = git
GRACEFUL_HAMMER_TIME = 5s
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = %[1]s/data/gitea.db
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = %[1]s/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = secret
PASSWORD_HASH_ALGO = pbkdf2$1000$50
[service]
DISABLE_REGISTRATION = true
[indexer]
ISSUE_INDEXER_TYPE = db
[cron]
ENABLED = false
[actions]
ENABLED = false
[oauth2]
ENABLED = false
[log]
MODE = console
LEVEL = Warn
`
