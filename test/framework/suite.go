/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package framework

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/synchub-dev/synchub/test/framework/servers"
)

// Suite is the environment of one test suite. Its specs share the servers and use different workspaces and namespaces.
type Suite struct {
	*servers.Environment
	// Options are the options of the servers; start the hub with them too, so that its log is kept beside theirs.
	Options servers.Options
}

// StartSuite starts a kcp and targets below <repository>/logs/<name>, where it first removes the files of an earlier run.
// It fills in the directories of options. For moreHubUsers see servers.StartKCP. After an error nothing runs, and the logs
// stay.
func StartSuite(ctx context.Context, name string, options servers.Options, targets map[string]servers.TargetOptions, moreHubUsers ...string) (*Suite, error) {
	options, err := inRepository(name, options)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(options.Dir); err != nil {
		return nil, fmt.Errorf("remove the files of an earlier run: %w", err)
	}
	world, err := servers.StartEnvironment(ctx, options, targets, moreHubUsers...)
	if err != nil {
		return nil, err
	}
	return &Suite{Environment: world, Options: options}, nil
}

// OpenSuite returns a suite that another process started, for clients of its servers; see servers.OpenEnvironment.
func OpenSuite(name string, targets []string, log func(string)) (*Suite, error) {
	options, err := inRepository(name, servers.Options{Log: log})
	if err != nil {
		return nil, err
	}
	world, err := servers.OpenEnvironment(options, targets...)
	if err != nil {
		return nil, err
	}
	return &Suite{Environment: world, Options: options}, nil
}

func inRepository(name string, options servers.Options) (servers.Options, error) {
	root, err := RepositoryRoot()
	directories := ServerOptions(root, name)
	options.Dir, options.Bin = directories.Dir, directories.Bin
	return options, err
}

// ServerOptions returns the directories of the servers of a test suite in the repository with this root.
func ServerOptions(root, name string) servers.Options {
	return servers.Options{Dir: filepath.Join(root, "logs", name), Bin: filepath.Join(root, "bin")}
}

// Finish stops the servers. If the suite failed, it keeps the logs and returns their directory; it removes all other files.
func (s *Suite) Finish(failed bool) (logs string, err error) {
	err = s.Stop()
	logs, removeErr := RemoveFiles(s.Options.Dir, failed)
	return logs, errors.Join(err, removeErr)
}

// RemoveFiles removes the directory of stopped servers. If keepLogs is set and there are logs, it keeps those and returns
// their directory.
func RemoveFiles(dir string, keepLogs bool) (logs string, err error) {
	logs = filepath.Join(dir, "logs")
	if _, err := os.Stat(logs); err != nil || !keepLogs {
		return "", os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != "logs" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return logs, err
}

// RepositoryRoot returns the directory with the go.mod file above the working directory.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: no go.mod at or above the working directory: %w", err)
		}
		dir = filepath.Dir(dir)
	}
}
