package gms

const processEnv = "FENCEPOST_TEST_PROCESS"

func runProcess() int { return 0 }
