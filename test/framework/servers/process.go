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

package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Process is one run of a program in its own process group: a Ctrl-C in the terminal does not reach it, so the program that
// started it decides when it ends. It is killed when that program ends, even if that program is killed.
type Process struct {
	name    string
	command *exec.Cmd
	logFile string
	// logStart is the offset of this run in the log file, which earlier runs of the same name may share.
	logStart int64
	done     chan struct{}
}

// Start starts a program in the background. It appends its standard output and error to Dir/logs/<name>.log. env is added
// to the environment of the calling program.
func Start(opts Options, name, path string, args, env []string) (*Process, error) {
	logs, err := opts.dataDir("logs")
	if err != nil {
		return nil, err
	}
	p := &Process{name: name, logFile: filepath.Join(logs, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor, nothing is written through this one
	if info, err := log.Stat(); err == nil {
		p.logStart = info.Size()
	}

	p.command = exec.Command(path, args...) //nolint:noctx // it ends by Terminate or Kill9, or with this program
	p.command.Env = append(os.Environ(), env...)
	p.command.Stdout, p.command.Stderr = log, log
	if err := startTied(p.command); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.command.Wait() // the outcome stays in ProcessState
	}()
	return p, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.command.Process.Pid }

// LogFile returns the path of the file with the output of the process.
func (p *Process) LogFile() string { return p.logFile }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait returns the exit code after the process has ended, or -1 if a signal ended it. An error means that ctx ended first.
func (p *Process) Wait(ctx context.Context) (exitCode int, err error) {
	select {
	case <-p.done:
		return p.command.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for %s (pid %d) to end: %w", p.name, p.Pid(), ctx.Err())
	}
}

// Terminate sends SIGTERM and returns the exit code. If ctx ends before the process, Terminate kills the process and
// returns an error.
func (p *Process) Terminate(ctx context.Context) (exitCode int, err error) {
	// A stopped process would not handle the signal.
	if err := errors.Join(p.signal(syscall.SIGTERM), p.Resume()); err != nil {
		return 0, err
	}
	exitCode, err = p.Wait(ctx)
	if err == nil {
		return exitCode, nil
	}
	return -1, errors.Join(fmt.Errorf("%s did not end on SIGTERM and was killed: %w", p.name, err), p.Kill9())
}

// Kill9 sends SIGKILL and returns when the process has ended.
func (p *Process) Kill9() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Pause stops the process with SIGSTOP and returns when all its threads have stopped. It keeps its connections and answers
// none of them.
func (p *Process) Pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.awaitStop()
}

// Resume continues a paused process.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

// signal sends a signal. It does nothing if the process has ended.
func (p *Process) signal(s syscall.Signal) error {
	if err := p.command.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s (pid %d): %w", s, p.name, p.Pid(), err)
	}
	return nil
}

// LogTail returns the last lines that this run printed.
func (p *Process) LogTail(lines int) string {
	content, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	content = content[min(p.logStart, int64(len(content))):]
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
