// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const (
	githubHost       = "github.com"
	githubTenants    = ".ghe.com"
	azureHost        = "dev.azure.com"
	azureTenants     = ".visualstudio.com"
	azureRepository  = "_git"
	azureSSHVersion  = "v3"
	azureSSHSegments = 4
	// ownerParts are the parts of owner/name.
	ownerParts = 2
	// maxSegment bounds a part of a path in bytes. Names that hosts accept are shorter.
	maxSegment = 255
)

// webHosts are the hosts of the API for hosts that serve only SSH.
var webHosts = map[string]string{
	"ssh.github.com": githubHost, "altssh.gitlab.com": "gitlab.com",
	"ssh.dev.azure.com": azureHost, "vs-ssh.visualstudio.com": azureHost,
}

// wellKnown are the kinds of public hosts.
var wellKnown = map[string]Kind{
	githubHost: GitHub, "gitlab.com": GitLab, "codeberg.org": Gitea, "gitea.com": Gitea, azureHost: AzureDevOps,
}

// KindOf returns the kind of a well-known host, from the URL of a repository.
func KindOf(repoURL string) (Kind, bool) {
	repository, err := parseRepository(repoURL)
	if err != nil {
		return "", false
	}
	switch name := repository.name; {
	case strings.HasSuffix(name, azureTenants):
		return AzureDevOps, true
	case strings.HasSuffix(name, githubTenants):
		return GitHub, true
	default:
		kind, ok := wellKnown[name]
		return kind, ok
	}
}

// repository is the parsed URL of a repository.
type repository struct {
	// scheme is that of the host's web pages, host its host with its port, and name the host without it.
	scheme, host, name string
	// isSSH reports whether the URL is one for SSH.
	isSSH bool
	path  []string
}

func parseRepository(repoURL string) (repository, error) {
	endpoint, err := transport.NewEndpoint(repoURL)
	if err != nil || endpoint.Host == "" {
		return repository{}, invalid("the repository URL cannot be read") // err could quote a password.
	}
	parsed := repository{scheme: endpoint.Protocol, host: strings.ToLower(endpoint.Host)}
	switch {
	case endpoint.Protocol == "ssh":
		parsed.scheme, parsed.isSSH = "https", true
	case endpoint.Protocol != "https" && endpoint.Protocol != "http":
		return repository{}, invalid("a repository URL of scheme %s has no pull requests", printable.Line(endpoint.Protocol))
	}
	if web, ok := webHosts[parsed.host]; ok {
		parsed.host = web
	}
	parsed.name = parsed.host
	if _, public := wellKnown[parsed.name]; public {
		parsed.scheme = "https"
	}
	if endpoint.Port != 0 && !parsed.isSSH {
		parsed.host += ":" + strconv.Itoa(endpoint.Port)
	}
	path := strings.TrimSuffix(strings.Trim(endpoint.Path, "/"), ".git")
	parsed.path = strings.Split(path, "/")
	return parsed, checkPath(parsed.path)
}

// checkPath refuses a path with parts that mean another one.
func checkPath(path []string) error {
	for _, segment := range path {
		if segment == "" || segment == "." || segment == ".." || len(segment) > maxSegment {
			return invalid("the path of the repository URL is not one of a repository")
		}
	}
	return nil
}

// locate returns where the API of a repository begins, and the names by which the API knows the repository.
func locate(kind Kind, repoURL, apiURL string) (location, error) {
	parsed, err := parseRepository(repoURL)
	if err != nil {
		return location{}, err
	}
	var found location
	switch kind {
	case GitHub, Gitea:
		found, err = ownerAndName(kind, parsed, apiURL != "")
	case GitLab:
		found.path = withoutPrefix(parsed, apiURL)
		if len(found.path) < ownerParts {
			err = invalid("the path of the repository URL must end with group/name")
		}
	case AzureDevOps:
		found, err = locateAzure(parsed)
	default:
		return location{}, invalid("hosts of the kind %q are not known", printable.Line(string(kind)))
	}
	if err != nil {
		return location{}, err
	}
	if apiURL == "" && found.api == nil {
		found.api = defaultAPI(kind, parsed)
	} else if apiURL != "" {
		found.api, err = parseAPI(apiURL)
	}
	return found, err
}

// withoutPrefix returns the path of a project of GitLab without that of the installation, which the URL of the API has as well.
func withoutPrefix(parsed repository, apiURL string) []string {
	const suffix = "/api/v4"
	api, err := url.Parse(apiURL)
	if err != nil || parsed.isSSH {
		return parsed.path
	}
	prefix := strings.Trim(strings.TrimSuffix(strings.TrimSuffix(api.Path, "/"), suffix), "/")
	if path, ok := strings.CutPrefix(strings.Join(parsed.path, "/"), prefix+"/"); ok && prefix != "" {
		return strings.Split(path, "/")
	}
	return parsed.path
}

// ownerAndName reads the last two parts of a path. Parts before them belong to the installation, whose API cannot be derived from them.
func ownerAndName(kind Kind, parsed repository, hasAPI bool) (location, error) {
	if len(parsed.path) < ownerParts {
		return location{}, invalid("the path of the repository URL must end with owner/name")
	}
	if len(parsed.path) > ownerParts && !hasAPI {
		return location{}, invalid("%s is below a path of its host: set host.apiURL", kind)
	}
	return location{path: parsed.path[len(parsed.path)-ownerParts:]}, nil
}

// locateAzure reads the URLs of Azure DevOps: [COLLECTION/]PROJECT/_git/NAME, or v3/ORGANIZATION/PROJECT/NAME with SSH. A repository with
// the name of its project may be written without the project.
func locateAzure(parsed repository) (location, error) {
	path := make([]string, len(parsed.path))
	for i, segment := range parsed.path {
		decoded, err := url.PathUnescape(segment)
		if err != nil || strings.Contains(decoded, "/") {
			return location{}, invalid("the path of the repository URL cannot be read")
		}
		path[i] = decoded
	}
	if err := checkPath(path); err != nil {
		return location{}, err
	}
	if parsed.isSSH {
		if len(path) != azureSSHSegments || path[0] != azureSSHVersion || parsed.name != azureHost {
			return location{}, invalid("the repository URL must be https://dev.azure.com/ORGANIZATION/PROJECT/_git/NAME or " +
				"git@ssh.dev.azure.com:v3/ORGANIZATION/PROJECT/NAME")
		}
		return location{api: azureAPI(parsed, path[1:2]), path: path[2:]}, nil
	}
	const tail = 2 // _git and the name
	at := len(path) - tail
	if at < 0 || path[at] != azureRepository {
		return location{}, invalid("the path of the repository URL must be ORGANIZATION/PROJECT/_git/NAME")
	}
	name, before := path[at+1], path[:at]
	if tenant, ok := strings.CutSuffix(parsed.name, azureTenants); ok {
		if len(before) > 0 && strings.EqualFold(before[0], "DefaultCollection") {
			before = before[1:]
		}
		parsed.host, before = azureHost, append([]string{tenant}, before...)
	}
	if len(before) == 0 {
		return location{}, invalid("the path of the repository URL must be ORGANIZATION/PROJECT/_git/NAME")
	}
	if len(before) == 1 {
		return location{api: azureAPI(parsed, before), path: []string{name, name}}, nil
	}
	last := len(before) - 1
	return location{api: azureAPI(parsed, before[:last]), path: []string{before[last], name}}, nil
}

func azureAPI(parsed repository, path []string) *url.URL {
	escaped := make([]string, len(path))
	for i, segment := range path {
		escaped[i] = url.PathEscape(segment)
	}
	return (&url.URL{Scheme: parsed.scheme, Host: parsed.host}).JoinPath(escaped...)
}

func defaultAPI(kind Kind, parsed repository) *url.URL {
	api := &url.URL{Scheme: parsed.scheme, Host: parsed.host}
	switch {
	case kind == GitHub && (parsed.name == githubHost || strings.HasSuffix(parsed.name, githubTenants)):
		api.Host = "api." + parsed.host
	case kind == GitHub:
		api.Path = "/api/v3"
	case kind == GitLab:
		api.Path = "/api/v4"
	default:
		api.Path = "/api/v1"
	}
	return api
}

func parseAPI(apiURL string) (*url.URL, error) {
	parsed, err := url.Parse(apiURL)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.User != nil ||
		parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, invalid("host.apiURL must be https://HOST/PATH, without a user, a query and a fragment")
	}
	parsed.Path, parsed.RawPath = strings.TrimSuffix(parsed.Path, "/"), ""
	return parsed, nil
}
