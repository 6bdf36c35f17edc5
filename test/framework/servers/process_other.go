//go:build !linux

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
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// startTied starts a command that receives no signals from a terminal. Only on Linux can the command be killed together
// with this program.
func startTied(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command.Start()
}

// awaitStop does nothing: on this platform the states of threads are unknown.
func (p *Process) awaitStop() error { return nil }

// ProcessorTime returns an error: it is supported only on Linux.
func (p *Process) ProcessorTime() (time.Duration, error) { return 0, errors.ErrUnsupported }

// machineMemory returns 0: on this platform the memory of the machine is unknown.
func machineMemory() uint64 { return 0 }
