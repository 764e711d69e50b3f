package device

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestXtensa walks register windows made by hand.
func TestXtensa(t *testing.T) {
	need(t, "gcc")
	exe := filepath.Join(t.TempDir(), "xtensa")
	if out, err := exec.Command("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-fsanitize=undefined", "-o", exe, "test/xtensa.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	if out, err := exec.Command(exe).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// adapters are the files that each system compiles, beside src/, and the macros that its
// build defines.
var adapters = []struct{ name, files, include, define string }{
	{"esp-idf, malloc", "esp-idf/lwsbt_esp_idf.c adapters/wrap.c", "esp-idf test/stubs/esp-idf", "CONFIG_LWSBT_WRAP=1 LWSBT_WRAP_PORT=lwsbt_esp_idf_port"},
	{"esp-idf, hooks", "esp-idf/lwsbt_esp_idf.c adapters/hooks.c", "esp-idf test/stubs/esp-idf", "CONFIG_LWSBT_HOOKS=1 LWSBT_HOOK_PORT=lwsbt_esp_idf_port"},
	{"zephyr, malloc", "zephyr/lwsbt_zephyr.c zephyr/sample/src/main.c adapters/wrap.c", "zephyr test/stubs/zephyr", "CONFIG_LWSBT_WRAP=1 LWSBT_WRAP_PORT=lwsbt_zephyr_port"},
	{"zephyr, listener", "zephyr/lwsbt_zephyr.c adapters/hooks.c", "zephyr test/stubs/zephyr", "CONFIG_LWSBT_LISTENER=1 LWSBT_HOOK_PORT=lwsbt_zephyr_port"},
	{"nuttx", "nuttx/lwsbt_nuttx.c adapters/wrap.c", "nuttx test/stubs/nuttx", "LWSBT_WRAP_PORT=lwsbt_nuttx_port"},
	{"freertos", "freertos/lwsbt_freertos.c freertos/sample/main.c", "freertos freertos/sample test/stubs/freertos", ""},
	{"platformio", "adapters/wrap.c adapters/begin.c", "", ""},
}

// TestAdapters compiles the adapters against headers that declare what they call.
func TestAdapters(t *testing.T) {
	for _, cc := range []string{"arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb", "riscv64-unknown-elf-gcc -march=rv32imac -mabi=ilp32 --specs=picolibc.specs"} {
		args := strings.Fields(cc)
		for _, a := range adapters {
			t.Run(args[0]+"/"+a.name, func(t *testing.T) {
				need(t, args[0])
				for _, file := range strings.Fields(a.files) {
					c := append(args[1:len(args):len(args)], "-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror", "-Iinclude", "-c", "-o", filepath.Join(t.TempDir(), "x.o"), file)
					for _, dir := range strings.Fields(a.include) {
						c = append(c, "-I"+dir)
					}
					for _, d := range strings.Fields(a.define) {
						c = append(c, "-D"+d)
					}
					if out, err := exec.Command(args[0], c...).CombinedOutput(); err != nil {
						t.Errorf("%s %s: %v\n%s", args[0], strings.Join(c, " "), err, out)
					}
				}
			})
		}
	}
}

// espIDF are the directories of ESP-IDF's headers, in components, for an ESP32-C3.
var espIDF = strings.Fields(`freertos/config/include freertos/config/include/freertos freertos/config/riscv/include
	freertos/FreeRTOS-Kernel/include freertos/FreeRTOS-Kernel/portable/riscv/include freertos/FreeRTOS-Kernel/portable/riscv/include/freertos
	freertos/esp_additions/include heap/include esp_common/include esp_timer/include esp_system/include esp_hw_support/include
	esp_hw_support/etm/include esp_rom/include esp_rom/esp32c3/include esp_rom/esp32c3/include/esp32c3 soc/include soc/esp32c3/include
	soc/esp32c3/register hal/include hal/esp32c3/include riscv/include esp_libc/platform_include newlib/platform_include log/include`)

// sdkconfig is what menuconfig would write, as far as the headers need it.
const sdkconfig = `
#define CONFIG_IDF_TARGET "esp32c3"
#define CONFIG_IDF_TARGET_ESP32C3 1
#define CONFIG_IDF_TARGET_ARCH_RISCV 1
#define CONFIG_ESP_SYSTEM_SINGLE_CORE_MODE 1
#define CONFIG_FREERTOS_HZ 100
#define CONFIG_FREERTOS_UNICORE 1
#define CONFIG_FREERTOS_NUMBER_OF_CORES 1
#define CONFIG_FREERTOS_ISR_STACKSIZE 1536
#define CONFIG_FREERTOS_MAX_TASK_NAME_LEN 16
#define CONFIG_FREERTOS_IDLE_TASK_STACKSIZE 1536
#define CONFIG_FREERTOS_TIMER_TASK_PRIORITY 1
#define CONFIG_FREERTOS_TIMER_TASK_STACK_DEPTH 2048
#define CONFIG_FREERTOS_TIMER_QUEUE_LENGTH 10
#define CONFIG_FREERTOS_QUEUE_REGISTRY_SIZE 0
#define CONFIG_FREERTOS_TASK_NOTIFICATION_ARRAY_ENTRIES 1
#define CONFIG_FREERTOS_THREAD_LOCAL_STORAGE_POINTERS 1
#define CONFIG_FREERTOS_ENABLE_TASK_SNAPSHOT 1
#define CONFIG_FREERTOS_TIMER_SERVICE_TASK_NAME "Tmr Svc"
`

// compileAdapters compiles the adapters to a system as it would, against its headers.
func compileAdapters(t *testing.T, system, gcc string, headers []string) {
	t.Helper()
	command := strings.Fields(gcc + " -Os -Wall -Werror -Iinclude -I" + system + " -c -o " + filepath.Join(t.TempDir(), "x.o"))
	need(t, command[0])
	for _, d := range headers {
		command = append(command, "-isystem", d)
	}
	for _, a := range adapters {
		if !strings.HasPrefix(a.name, system) {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			for _, file := range strings.Fields(a.files) {
				args := slices.Clone(command[1:])
				for _, d := range strings.Fields(a.define) {
					args = append(args, "-D"+d)
				}
				if out, err := exec.Command(command[0], append(args, file)...).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", file, err, out)
				}
			}
		})
	}
}

// TestESPIDF compiles the adapter against the headers of ESP-IDF, which is at LWSBT_ESP_IDF.
func TestESPIDF(t *testing.T) {
	idf := os.Getenv("LWSBT_ESP_IDF")
	if idf == "" {
		t.Skip("LWSBT_ESP_IDF is not set to a checkout of ESP-IDF")
	}
	headers := []string{t.TempDir()}
	if err := os.WriteFile(filepath.Join(headers[0], "sdkconfig.h"), []byte(sdkconfig), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, d := range espIDF {
		headers = append(headers, filepath.Join(idf, "components", d))
	}
	compileAdapters(t, "esp-idf", "riscv64-unknown-elf-gcc -march=rv32imc_zicsr -mabi=ilp32 --specs=picolibc.specs -std=gnu17 -DESP_PLATFORM", headers)
}

// zephyrGenerated are files that a build of Zephyr generates, as far as the headers need them for a Cortex-M3.
var zephyrGenerated = map[string]string{
	"autoconf.h": `
#define CONFIG_ARM 1
#define CONFIG_CPU_CORTEX 1
#define CONFIG_CPU_CORTEX_M 1
#define CONFIG_CPU_CORTEX_M3 1
#define CONFIG_ARMV7_M_ARMV8_M_MAINLINE 1
#define CONFIG_CPU_CORTEX_M_HAS_BASEPRI 1
#define CONFIG_NUM_IRQS 32
#define CONFIG_MULTITHREADING 1
#define CONFIG_NUM_COOP_PRIORITIES 16
#define CONFIG_NUM_PREEMPT_PRIORITIES 15
#define CONFIG_MP_NUM_CPUS 1
#define CONFIG_SYS_CLOCK_EXISTS 1
#define CONFIG_SYS_CLOCK_TICKS_PER_SEC 100
#define CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC 25000000
#define CONFIG_SYS_CLOCK_MAX_TIMEOUT_DAYS 365
#define CONFIG_THREAD_STACK_INFO 1
#define CONFIG_PRINTK 1
#define CONFIG_HEAP_LISTENER 1
#define CONFIG_HEAP_MEM_POOL_SIZE 4096
`,
	"devicetree_unfixed.h": `
#define DT_N_S_cpus_CHILD_NUM 1
#define DT_N_S_chosen_CHILD_NUM 0
#define DT_N_INST_0_arm_v7m_nvic_P_arm_num_irq_priority_bits 3
`,
	"devicetree_fixups.h": "", "kobj-types-enum.h": "", "device_extern.h": "",
}

// TestZephyr compiles the adapter against the headers of Zephyr, which is at LWSBT_ZEPHYR.
func TestZephyr(t *testing.T) {
	zephyr := os.Getenv("LWSBT_ZEPHYR")
	if zephyr == "" {
		t.Skip("LWSBT_ZEPHYR is not set to a checkout of Zephyr")
	}
	need(t, "python3")
	dir := t.TempDir()
	for name, text := range zephyrGenerated {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const calls = `set -e; scripts=$(dirname $(find $1/scripts -name gen_syscalls.py)); cd $2
python3 $scripts/parse_syscalls.py -i $1/include -j calls.json -t tags.json
python3 $scripts/gen_syscalls.py -i calls.json -d dispatch.c -l syscall_list.h -o syscalls`
	if out, err := exec.Command("sh", "-c", calls, "sh", zephyr, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compileAdapters(t, "zephyr", "arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -std=gnu11 -D__ZEPHYR__ -DKERNEL -imacros "+filepath.Join(dir, "autoconf.h"),
		[]string{dir, zephyr + "/include", zephyr + "/include/zephyr", zephyr + "/kernel/include", zephyr + "/arch/arm/include", zephyr + "/soc/arm/arm/mps2"})
}

// TestKconfig reads the Kconfig files as the systems do, and checks which macros choices
// give. The symbols that they select and depend on are the systems'.
func TestKconfig(t *testing.T) {
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import kconfiglib").Run() != nil {
		t.Skip("no python3-kconfiglib")
	}
	for _, c := range []struct{ file, system, set, want string }{
		{"Kconfig", "config HEAP_USE_HOOKS\n bool\n", "", "LWSBT_WRAP=y LWSBT_HOOKS=n LWSBT_HEAP_DEPTH=16 HEAP_USE_HOOKS=n"},
		{"Kconfig", "config HEAP_USE_HOOKS\n bool\n", "LWSBT_HOOKS=y LWSBT_HEAP_DEPTH=31", "LWSBT_WRAP=n LWSBT_HOOKS=y LWSBT_HEAP_DEPTH=31 HEAP_USE_HOOKS=y"},
		{"zephyr/Kconfig", "config THREAD_STACK_INFO\n def_bool y\nconfig HEAP_LISTENER\n bool\n", "LWSBT=y", "LWSBT_WRAP=y LWSBT_HEAP_DEPTH=16 HEAP_LISTENER=n"},
		{"zephyr/Kconfig", "config THREAD_STACK_INFO\n def_bool y\nconfig HEAP_LISTENER\n bool\n", "LWSBT=y LWSBT_LISTENER=y", "LWSBT_WRAP=n HEAP_LISTENER=y"},
		{"nuttx/Kconfig", "config BUILD_FLAT\n def_bool y\n", "LWSBT=y", "LWSBT=y LWSBT_HEAP_DEPTH=16"},
	} {
		file, err := filepath.Abs(c.file)
		if err != nil {
			t.Fatal(err)
		}
		top := filepath.Join(t.TempDir(), "Kconfig")
		if err := os.WriteFile(top, []byte(c.system+"source \""+file+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		script := `import sys, kconfiglib
k = kconfiglib.Kconfig(sys.argv[1], warn_to_stderr=False)
for s in sys.argv[2].split():
    name, value = s.split("=")
    k.syms[name].set_value(value)
print(" ".join(n.split("=")[0] + "=" + k.syms[n.split("=")[0]].str_value for n in sys.argv[3].split()))
print(*k.warnings)
`
		out, err := exec.Command(python, "-c", script, top, c.set, c.want).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%s with %q: %v\ngot  %swant %s", c.file, c.set, err, out, c.want)
		}
	}
}

// TestManifests checks the files by which the systems find the library, where they look for
// them, by the systems' documented rules.
func TestManifests(t *testing.T) {
	version := regexp.MustCompile(`project\(lwsbt VERSION ([\d.]+)`).FindStringSubmatch(read(t, "CMakeLists.txt"))
	if version == nil {
		t.Fatal("no version in CMakeLists.txt")
	}
	// PlatformIO: library.json in the root of the library
	var library struct {
		Name, Version, Description, License string
		Repository                          struct{ Type, URL string }
		Build                               struct {
			SrcDir, IncludeDir string
			SrcFilter          []string
		}
	}
	d := json.NewDecoder(strings.NewReader(read(t, "library.json")))
	if err := d.Decode(&library); err != nil {
		t.Fatalf("library.json: %v", err)
	}
	if !regexp.MustCompile(`^[^:/,]{1,50}$`).MatchString(library.Name) || library.Version != version[1] || library.License != "MIT" || library.Repository.Type != "git" {
		t.Errorf("library.json: %+v, expected a name, version %s, license and repository", library, version[1])
	}
	for _, f := range library.Build.SrcFilter {
		m := regexp.MustCompile(`^\+<(.+)>$`).FindStringSubmatch(f)
		if m == nil {
			t.Errorf("library.json: filter %q, expected +<…>", f)
			continue
		}
		if files, err := filepath.Glob(filepath.Join(library.Build.SrcDir, m[1])); err != nil || len(files) == 0 {
			t.Errorf("library.json: %q matches no file", f)
		}
	}
	// ESP-IDF: idf_component.yml, CMakeLists.txt and Kconfig in the root of the component
	manifest := yaml(t, "idf_component.yml")
	if manifest["version"] != `"`+version[1]+`"` || manifest["description"] == "" || !strings.HasPrefix(manifest["url"], "https://") {
		t.Errorf("idf_component.yml: %q, expected version %s, description and url", manifest, version[1])
	}
	for _, key := range slices.Sorted(maps.Keys(manifest)) {
		if !slices.Contains(strings.Fields("version description url license targets dependencies tags maintainers repository documentation issues discussion examples files"), key) {
			t.Errorf("idf_component.yml: unknown key %q", key)
		}
	}
	if !strings.Contains(read(t, "CMakeLists.txt"), "esp-idf/component.cmake") || !strings.Contains(read(t, "esp-idf/component.cmake"), "idf_component_register(") {
		t.Error("CMakeLists.txt does not register the component of ESP-IDF")
	}
	// Zephyr: zephyr/module.yml in the root of the module; cmake is the directory of its
	// CMakeLists.txt, kconfig a file
	module := read(t, "zephyr/module.yml")
	for _, c := range []struct{ pattern, file string }{{`(?m)^  cmake: (\S+)$`, "/CMakeLists.txt"}, {`(?m)^  kconfig: (\S+)$`, ""}, {`(?m)^  - (\S+)$`, "/sample.yaml"}} {
		m := regexp.MustCompile(c.pattern).FindStringSubmatch(module)
		if m == nil {
			t.Errorf("zephyr/module.yml lacks %s", c.pattern)
		} else if _, err := os.Stat(m[1] + c.file); err != nil {
			t.Errorf("zephyr/module.yml: %v", err)
		}
	}
	for _, c := range [][2]string{{"zephyr/CMakeLists.txt", "zephyr_library_named(lwsbt)"}, {"zephyr/sample/CMakeLists.txt", "find_package(Zephyr"},
		{"nuttx/Make.defs", "CONFIGURED_APPS +="}, {"nuttx/Makefile", "include $(APPDIR)/Application.mk"}} {
		if !strings.Contains(read(t, c[0]), c[1]) {
			t.Errorf("%s lacks %q", c[0], c[1])
		}
	}
	// Macros of Kconfig are those that the sources read.
	for _, c := range [][2]string{{"esp-idf/lwsbt_esp_idf.c", "Kconfig"}, {"zephyr/lwsbt_zephyr.c", "zephyr/Kconfig"}} {
		for _, m := range regexp.MustCompile(`CONFIG_(LWSBT_\w+)`).FindAllStringSubmatch(read(t, c[0]), -1) {
			if !strings.Contains(read(t, c[1]), "config "+m[1]+"\n") {
				t.Errorf("%s reads CONFIG_%s, which %s lacks", c[0], m[1], c[1])
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// yaml returns the keys of the first level of a YAML file, and their values.
func yaml(t *testing.T, path string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, line := range strings.Split(read(t, path), "\n") {
		if m := regexp.MustCompile(`^([a-z_]+):(?: (.*))?$`).FindStringSubmatch(line); m != nil {
			values[m[1]] = m[2]
		}
	}
	return values
}
