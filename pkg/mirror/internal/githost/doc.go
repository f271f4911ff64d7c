// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package githost opens, updates and closes pull requests at Git hosts: GitHub, GitLab, Gitea and Forgejo, and Azure DevOps.
//
// A merge request of GitLab is called a pull request here. Head and base are branches of the same repository; pull requests from forks are
// ignored. Every method can be repeated after the death of the process at any step: Create returns the pull request that exists, Update
// writes only what differs, and Comment posts nothing twice.
//
// Neither a host nor its responses are trusted. A request is bounded in time and in bytes, a list in pages, and redirects are not followed,
// so that the token reaches only the host of the API. Errors contain no token, and what they quote of a host is short and printable. The
// texts of a PullRequest are as the host has them: every user with access to the repository can write them.
package githost
