/* Asks AWS's engine: a line is a pattern, a tab and an event. The answer is "yes N" or "no N", where N is the pattern's
 * complexity, or "refused" and the reason. */
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import software.amazon.event.ruler.Machine;
import software.amazon.event.ruler.MachineComplexityEvaluator;

public class Ruler {
    private static final int ENOUGH = 100;

    private static String answer(String pattern, String event) {
        try {
            Machine machine = Machine.builder().build();
            machine.addRule("rule", pattern);
            int complexity = machine.evaluateComplexity(new MachineComplexityEvaluator(ENOUGH));
            return (machine.rulesForJSONEvent(event).isEmpty() ? "no " : "yes ") + complexity;
        } catch (Exception e) {
            return "refused " + String.valueOf(e.getMessage()).split("\n")[0];
        }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            int tab = line.indexOf('\t');
            out.write(answer(line.substring(0, tab), line.substring(tab + 1)));
            out.newLine();
        }
        out.flush();
    }
}
