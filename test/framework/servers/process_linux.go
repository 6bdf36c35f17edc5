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
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// starter runs functions on one OS thread that is never released. The kernel sends a child its parent-death signal when the
// thread that started it ends. Any other thread of a Go program may end before the program.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// startTied starts a command that is killed when this program ends and that receives no signals from a terminal.
func startTied(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	starter() <- func() { started <- command.Start() }
	return <-started
}

// awaitStop returns when all threads of a paused process have stopped, or when it has ended. Until then any thread may
// still answer a request.
func (p *Process) awaitStop() error {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid(), nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case err == nil, errors.Is(err, unix.ECHILD):
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait until %s (pid %d) has stopped: %w", p.name, p.Pid(), err)
		}
	}
}

// ProcessorTime returns the CPU time of the process so far.
func (p *Process) ProcessorTime() (time.Duration, error) {
	running, err := procfs.NewProc(p.Pid())
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.name, err)
	}
	stat, err := running.Stat()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.name, err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}

// machineMemory returns the memory of the machine in bytes, or 0 if it is unknown.
func machineMemory() uint64 {
	system, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	memory, err := system.Meminfo()
	if err != nil || memory.MemTotalBytes == nil {
		return 0
	}
	return *memory.MemTotalBytes
}
