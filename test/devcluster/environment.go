// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"strconv"
	"strings"
)

// Variables that describe a cluster, in the file env in its folder and in Environ.
const (
	// EnvKubeconfig is the path of the administrator's kubeconfig.
	EnvKubeconfig = "KUBECONFIG"
	// EnvKubectl is the path of kubectl, of the control plane's version.
	EnvKubectl = "KUBECTL"
	// EnvServerURL is the URL of the slipstream server without the aggregator.
	EnvServerURL = "SERVER_URL"
	// EnvServerPIDs are the ids of the running server processes, separated by spaces.
	EnvServerPIDs = "SERVER_PIDS"
	// EnvServerLog is the path of the log that all servers write to.
	EnvServerLog = "SERVER_LOG"
	// EnvDataDir is the folder of the server's stores.
	EnvDataDir = "DATA_DIR"
	// EnvGitURL is the base of the HTTP Git server; a push to GIT_URL/NAME.git creates a
	// missing repository.
	EnvGitURL = "GIT_URL"
	// EnvGitRoot is the folder of the bare repositories.
	EnvGitRoot = "GIT_ROOT"
	// EnvGitSSHURL is the base of the SSH Git server.
	EnvGitSSHURL = "GIT_SSH_URL"
	// EnvGitSSHKey is the path of a private key that the SSH Git server accepts.
	EnvGitSSHKey = "GIT_SSH_KEY"
	// EnvGitSSHKnownHosts is the path of a known_hosts file for the SSH Git server.
	EnvGitSSHKnownHosts = "GIT_SSH_KNOWN_HOSTS"
	// EnvReceiverURL is the URL of a receiver for the CloudEvents of pipelines.
	EnvReceiverURL = "RECEIVER_URL"
	// EnvReceiverLog is the path of the receiver's log, with a line for each object that it receives.
	EnvReceiverLog = "RECEIVER_LOG"
	// EnvAdmissionSegmentFile is the path of the file with the secret in the path of admission reviews that do not come
	// through the aggregator.
	EnvAdmissionSegmentFile = "ADMISSION_SEGMENT_FILE"
	// EnvControlPlaneLogs is the folder of the control plane's logs.
	EnvControlPlaneLogs = "CONTROL_PLANE_LOGS"
)

// Environ returns the description of the cluster as KEY=VALUE strings, as os.Environ does.
func (c *Cluster) Environ() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.environ()
}

// Env returns one variable of Environ, empty if it does not exist.
func (c *Cluster) Env(name string) string {
	for _, variable := range c.Environ() {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

func (c *Cluster) environ() []string {
	var pids []string
	for _, running := range c.servers(nil) {
		pids = append(pids, strconv.Itoa(running.PID))
	}
	return []string{
		EnvKubeconfig + "=" + string(c.Admin()),
		EnvKubectl + "=" + c.state.Programs.Kubectl,
		EnvServerURL + "=" + c.serverURL(),
		EnvServerPIDs + "=" + strings.Join(pids, " "),
		EnvServerLog + "=" + c.files.log(serverPart),
		EnvDataDir + "=" + c.files.data(),
		EnvGitURL + "=" + c.gitURL(),
		EnvGitRoot + "=" + c.files.git(),
		EnvGitSSHURL + "=ssh://git@" + address(c.state.Ports.GitSSH),
		EnvGitSSHKey + "=" + c.files.key(gitClientKey),
		EnvGitSSHKnownHosts + "=" + c.files.join("pki", gitKnownHosts),
		EnvReceiverURL + "=" + c.receiverURL(),
		EnvReceiverLog + "=" + c.files.log(receiverPart),
		EnvAdmissionSegmentFile + "=" + c.files.attribution(admissionSegment),
		EnvControlPlaneLogs + "=" + c.files.logs(),
	}
}

// writeEnvironment writes the variables to the file env, for a shell to read.
func (c *Cluster) writeEnvironment() error {
	var lines strings.Builder
	for _, variable := range c.environ() {
		name, value, _ := strings.Cut(variable, "=")
		lines.WriteString(name + "=" + quote(value) + "\n")
	}
	return writeWhole(c.files.env(), []byte(lines.String()))
}

// quote returns a value quoted for a shell, unquoted if nothing in it is special.
func quote(value string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,"
	if strings.Trim(value, plain) == "" {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
